// The intervals of error-by-precision: users, and with three seeds trainings, are random.
#include "analyses/error_order.h"
#include "core/random.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace gainlens::analyses {
namespace error_order_coverage_test {

struct Population {
  std::size_t users, seeds;
  double slope;    ///< of the success, in the precision
  double of_item;  ///< deviation of what an item adds to the success of its users, in a training
  double of_seed;  ///< deviation of the slope over trainings
};

double normal(Random& random) {
  return std::sqrt(-2 * std::log(1 - random.uniform())) * std::cos(2 * std::numbers::pi * random.uniform());
}

/// Test items follow a law of Zipf. Precision and success share the length of the history.
RankedUsers sample(const Population& population, std::uint64_t seed) {
  constexpr std::size_t items = 300;
  Random random(seed, 78);
  std::vector<double> cumulative;
  double sum = 0;
  for (std::size_t item = 0; item < items; ++item) cumulative.push_back(sum += 1 / static_cast<double>(item + 10));
  RankedUsers made{.arm = "bft"};
  made.most_precision = 1e9;
  std::vector<double> known;
  for (std::size_t user = 0; user < population.users; ++user) {
    made.history_length.push_back(static_cast<double>(2 + random.below(20)));
    made.history_popularity.push_back(normal(random));
    made.last_popularity.push_back(normal(random));
    known.push_back(normal(random) + 0.05 * made.history_length.back());
    const auto at = std::ranges::upper_bound(cumulative, sum * random.uniform()) - cumulative.begin();
    made.target.push_back(1 + std::min<std::int64_t>(at, items - 1));
  }
  for (std::size_t s = 0; s < population.seeds; ++s) {
    made.seeds.push_back(s);
    std::vector<double> of_item;
    for (std::size_t item = 0; item < items; ++item) of_item.push_back(population.of_item * normal(random));
    const double slope = population.slope + population.of_seed * normal(random);
    std::vector<double>&rank = made.rank.emplace_back(), &precision = made.precision.emplace_back(),
    &confidence = made.confidence.emplace_back();
    for (std::size_t user = 0; user < population.users; ++user) {
      precision.push_back(known[user] + 0.3 * normal(random));
      const double success = slope * precision.back() + 0.05 * made.history_length[user] + normal(random) +
                             of_item[static_cast<std::size_t>(made.target[user] - 1)];
      confidence.push_back(success + 2 * normal(random));
      rank.push_back(1 + std::floor(60 / (1 + std::exp(1.2 * success))));
    }
  }
  return made;
}

/// The share of samples whose interval holds the mean of all samples, the smallest of several estimates.
double coverage(const Population& population, std::uint64_t samples) {
  std::vector<std::vector<SeedEstimate>> found;
  for (std::uint64_t seed = 0; seed < samples; ++seed) {
    const ErrorOrderReading reading = error_order(sample(population, seed), {.groups = 50, .seed = seed});
    found.push_back(
        {reading.by_rank.rho[0], reading.by_rank.given_all, reading.by_rank.difference[4], reading.by_hit.rho[0]});
  }
  double least = 1;
  for (std::size_t i = 0; i < found.front().size(); ++i) {
    double mean = 0;
    for (const auto& one : found) mean += *one[i].value / static_cast<double>(samples);
    const auto holds = std::ranges::count_if(found, [&](const std::vector<SeedEstimate>& one) {
      return one[i].interval && one[i].interval->low <= mean && mean <= one[i].interval->high;
    });
    const double share = static_cast<double>(holds) / static_cast<double>(samples);
    ::testing::Test::RecordProperty(
        fmt::format("estimate {} of {} users, {} seeds, slope {}, items {}, trainings {}", i, population.users,
                    population.seeds, population.slope, population.of_item, population.of_seed),
        fmt::format("coverage {:.3f}, mean {:.3f}", share, mean));
    least = std::min(least, share);
  }
  return least;
}

// 200 samples: a share of 95% has an error of 1.5 points, the smallest of four estimates lies lower.
TEST(ErrorOrderCoverage, OverUsersIsThatStated) {
  EXPECT_GE(coverage({100, 1, 0.0, 0.0, 0.0}, 200), 0.91);
  EXPECT_GE(coverage({400, 1, 0.3, 0.0, 0.0}, 200), 0.91);
}

TEST(ErrorOrderCoverage, OfUsersWhoseItemsErrTogetherIsThatStated) {
  EXPECT_GE(coverage({400, 1, 0.3, 1.0, 0.0}, 200), 0.91);
}

TEST(ErrorOrderCoverage, OverTrainingsAndUsersIsThatStated) {
  EXPECT_GE(coverage({200, 3, 0.3, 0.5, 0.2}, 200), 0.91);
  EXPECT_GE(coverage({200, 5, 0.0, 0.5, 0.0}, 200), 0.91);
}

}  // namespace error_order_coverage_test
}  // namespace gainlens::analyses
