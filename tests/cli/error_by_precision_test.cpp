#include "support/file_bytes.h"
#include "support/program.h"
#include "support/refused_call.h"
#include "support/shared_data.h"
#include "support/text_file.h"
#include "support/tiny_training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace gainlens::testing {
namespace error_by_precision_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

class ErrorByPrecision : public ::testing::Test {
 protected:
  void train(const std::string& out, const std::vector<std::string>& more) const { train_tiny(data_, out, 2, more); }
  ProgramResult read(const std::string& run, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"error-by-precision", run, "--quiet", "--data", data_};
    words.insert(words.end(), more.begin(), more.end());
    return run_gainlens(words);
  }

  TemporaryFolder folder_;
  std::string data_ = write_file(folder_.path() / "items.txt", tiny_histories(5, 4));
  std::string run_ = folder_.path() / "run";
};

TEST_F(ErrorByPrecision, EveryArmWithAFilterIsRead) {
  train(run_, {"--arm", "plain,bft", "--seeds", "2", "--warm-up", "1"});
  const std::string out = folder_.path() / "page";
  const ProgramResult text = read(run_, {"--out", out});
  ASSERT_EQ(text.exit_code, 0) << text.error;
  EXPECT_THAT(text.out, AllOf(StartsWith("arm bft, seeds 0, 1: 60 users with "), HasSubstr("\nconfidence "),
                              HasSubstr("success: a rank of at most 10\n"), HasSubstr("with these models"),
                              Not(HasSubstr("plain"))));
  for (const char* file : {"/report.html", "/error-by-precision.svg", "/summary.json"})
    EXPECT_TRUE(std::filesystem::exists(out + file)) << file;
  EXPECT_THAT(bytes_of(out + "/tables/error-by-precision.csv"), StartsWith("quantity,bin,"));
  const ProgramResult found = read(run_, {"--json", "--bins", "3"});
  ASSERT_EQ(found.exit_code, 0) << found.error;
  const Json arm = Json::parse(found.out).at("arms").at(0);
  EXPECT_EQ(arm.at("arm"), "bft");
  EXPECT_EQ(arm.at("interval_over"), "users");
  const Json& rho = arm.at("by_rank").at("precision").at("rho");
  ASSERT_EQ(rho.at("seeds").size(), 2u);
  const double mean = (rho.at("seeds")[0].at("value").get<double>() + rho.at("seeds")[1].at("value").get<double>()) / 2;
  EXPECT_NEAR(rho.at("value").get<double>(), mean, 1e-12);
  EXPECT_EQ(arm.at("bins").at("precision").size(), 3u);
  EXPECT_EQ(read(run_, {"--json", "--threads", "1"}).out, read(run_, {"--json", "--threads", "3"}).out);
}

TEST_F(ErrorByPrecision, WrongRequestsGetOneLine) {
  train(run_, {"--arm", "plain,bft", "--warm-up", "1"});
  const std::string other = folder_.path() / "other", idle = folder_.path() / "idle";
  train(other, {"--arm", "plain,gate"});
  train(idle, {"--arm", "bft", "--warm-up", "100"});
  expect_refused(read(other), other + ": has no filter: arms plain, gate; train one with --arm bft");
  expect_refused(read(run_, {"--arm", "plain"}), run_ + ": has no filter: arm plain; train one with --arm bft");
  expect_refused(read(run_, {"--arm", "btf"}), "has no arm 'btf', but plain, bft; did you mean 'bft'");
  expect_refused(read(idle), "its filter is not in force");
  expect_refused(read(run_ + "/run.h5"), "run.h5: is a file; give the folder of the run");
  expect_refused(read(folder_.path() / "none"), "none: no such folder");
  expect_refused(read(run_, {"--groups", "5"}), "--groups: 5; must be 20 to 10000");
  expect_refused(read(run_, {"--bins", "61"}), "--bins: 61 bins of 60 users; give at most as many");
  expect_refused(read(run_, {"--out", run_}), "is the folder of a run");
  data_ = write_file(folder_.path() / "more.txt", tiny_histories(5, 4) + "one 1 2 3 4\n");
  expect_refused(read(run_), "more.txt: is split otherwise than the data that " + run_ + " was trained on");
}

}  // namespace error_by_precision_test
}  // namespace gainlens::testing
