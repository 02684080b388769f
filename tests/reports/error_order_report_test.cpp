// The words, figure and page of `gainlens error-by-precision`.
#include "reports/error_order/error_order_report.h"
#include "support/file_bytes.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

namespace gainlens::reports {
namespace error_order_report_test {

using analyses::ErrorOrderReading;
using analyses::RankedUsers;
using gainlens::testing::bytes_of;
using gainlens::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// 200 users. The rank falls by `slope` places over all places of the precision, beside noise.
ErrorOrderReading reading_of(double slope, std::size_t seeds = 1, std::size_t count = 200) {
  RankedUsers users{.arm = "bft"};
  users.most_precision = 100;
  const auto noise = [](std::size_t user, std::size_t kind) {
    const double x = std::sin(static_cast<double>(user * 37 + kind * 101 + 1)) * 43758.5453;
    return x - std::floor(x);
  };
  for (std::size_t user = 0; user < count; ++user) {
    users.history_length.push_back(std::floor(2 + 9 * noise(user, 1)));
    users.history_popularity.push_back(noise(user, 2));
    users.last_popularity.push_back(std::floor(30 * noise(user, 3)));
    users.target.push_back(static_cast<std::int64_t>(user % 50 + 1));
  }
  for (std::size_t seed = 0; seed < seeds; ++seed) {
    users.seeds.push_back(seed);
    users.precision.emplace_back(), users.confidence.emplace_back(), users.rank.emplace_back();
    for (std::size_t user = 0; user < count; ++user) {
      users.precision.back().push_back(100 * noise(user, 4));
      users.confidence.back().push_back(noise(user, 5 + 2 * seed));
      users.rank.back().push_back(
          std::max(1.0, std::floor(20 + 60 * noise(user, 6 + 2 * seed) - slope * noise(user, 4))));
    }
  }
  return analyses::error_order(users, {});
}

TEST(ErrorOrderTerminal, SaysWhatTheIntervalsSay) {
  const std::string orders = print_error_order(reading_of(60));
  EXPECT_THAT(orders,
              AllOf(HasSubstr("arm bft, seed 0: 200 users with 50 different test items\n"),
                    HasSubstr("0.0% of users are at the bound of 100"),
                    HasSubstr("  The precision orders users by error.\n"), HasSubstr("error beyond history length.\n"),
                    HasSubstr("beyond history length, popularity and the confidence of the model.\n"),
                    HasSubstr("It orders them better than: history length, popularity of the history"),
                    HasSubstr("95%: over other users, with these models"), Not(HasSubstr(" \n"))));
  const std::string reverses = print_error_order(reading_of(-60, 3));
  EXPECT_THAT(reverses, AllOf(HasSubstr("The precision orders users the wrong way: "), HasSubstr("seeds 0, 1, 2"),
                              HasSubstr("95%: over other trainings and other users"), Not(HasSubstr("beyond"))));
  EXPECT_THAT(print_error_order(reading_of(60, 1, 25)),
              HasSubstr("Not decided whether the precision orders users by error: fewer than 30 users.\n"));
}

TEST(ErrorOrderReport, HasAFigureATableAndASummary) {
  const TemporaryFolder folder;
  std::vector<ErrorOrderReading> arms(2, reading_of(40, 2));
  arms[1].arm = "bft/wide";
  const WrittenReport written = write_error_order_report(arms, folder.path() / "page");
  EXPECT_TRUE(written.left_out.empty());
  EXPECT_TRUE(written.failed.empty());
  EXPECT_THAT(bytes_of(folder.path() / "page/report.html"), HasSubstr("orders users by error"));
  EXPECT_THAT(bytes_of(folder.path() / "page/error-by-precision.svg"), HasSubstr("NDCG@10"));
  EXPECT_THAT(bytes_of(folder.path() / "page/summary.json"), HasSubstr("partial_rho_given_all"));
  EXPECT_THAT(bytes_of(folder.path() / "page/tables/run-2/error-by-precision.csv"),
              AllOf(HasSubstr("quantity,bin,users_of_all_seeds,percentile,"), HasSubstr("\nprecision,1,40,0.05,"),
                    HasSubstr("\nconfidence,10,40,0.95,")));
  EXPECT_THAT(bytes_of(folder.path() / "page/tables/run-2/error-order-by-hit.csv"),
              AllOf(HasSubstr("quantity,rho,rho_low,rho_high,seed_deviation,"), HasSubstr("\nall rivals,,,,,,,,")));
  EXPECT_THAT(bytes_of(folder.path() / "page/tables/error-order-by-rank-2.tex"), HasSubstr("history length & "));
  const std::vector<ReadErrorOrder> many(5, ReadErrorOrder{arms.data()});
  EXPECT_THAT(error_order_figure(many).reason(), HasSubstr("5 arms; 4 fit one figure"));
}

}  // namespace error_order_report_test
}  // namespace gainlens::reports
