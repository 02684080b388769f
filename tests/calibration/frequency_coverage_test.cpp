// The interval of K by item frequency: users are random, and so are items.
#include "analyses/item_frequency.h"
#include "core/random.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>
#include <vector>

namespace gainlens::analyses {
namespace frequency_coverage_test {

struct Population {
  std::size_t users, items, length;
  double slope;      ///< of the quantity, in the item's place from rare to frequent
  double noise = 1;  ///< of a position, and of a user
};

double normal(Random& random) {
  return std::sqrt(-2 * std::log(1 - random.uniform())) * std::cos(2 * std::numbers::pi * random.uniform());
}

/// Items are read by a law of Zipf. A quantity depends on the item, on the user and on the position.
FrequencyCorrelation sample(const Population& population, std::uint64_t seed, std::int64_t groups) {
  Random random(seed, 77);
  std::vector<double> counts, cumulative;
  double sum = 0;
  for (std::size_t item = 0; item < population.items; ++item) {
    counts.push_back(static_cast<double>(item + 1));
    cumulative.push_back(sum += 1 / static_cast<double>(population.items - item));
  }
  ReadPositions read;
  std::vector<double> values, own(population.items);
  for (double& of_item : own) of_item = normal(random);
  for (std::size_t user = 0; user < population.users; ++user) {
    const double for_user = normal(random);
    const std::size_t length = 1 + random.below(2 * population.length - 1);
    for (std::size_t i = 0; i < length; ++i) {
      const auto at = std::ranges::upper_bound(cumulative, sum * random.uniform());
      const auto item = std::min<std::size_t>(static_cast<std::size_t>(at - cumulative.begin()), population.items - 1);
      read.item.push_back(item);
      read.place.push_back(static_cast<double>(i + 1));
      read.length.push_back(static_cast<double>(length));
      values.push_back(population.slope * static_cast<double>(item) / static_cast<double>(population.items) +
                       own[item] + population.noise * (for_user + normal(random)));
    }
    read.begin.push_back(read.item.size());
  }
  return frequency_correlations(read, counts, {values}, {.groups = groups, .seed = seed}).front();
}

/// The share of samples whose interval holds the value that samples of this size have on average.
double coverage(const Population& population, std::uint64_t samples, std::int64_t groups) {
  std::vector<FrequencyCorrelation> found;
  double sum = 0;
  for (std::uint64_t seed = 0; seed < samples; ++seed) {
    found.push_back(sample(population, seed, groups));
    EXPECT_TRUE(found.back().interval) << found.back().interval.reason();
    sum += *found.back().rho;
  }
  const double expected = sum / static_cast<double>(samples);
  const auto holds = std::ranges::count_if(found, [&](const FrequencyCorrelation& one) {
    return one.interval && one.interval->low <= expected && expected <= one.interval->high;
  });
  const double share = static_cast<double>(holds) / static_cast<double>(samples);
  ::testing::Test::RecordProperty(
      fmt::format("{} users, {} items, slope {}", population.users, population.items, population.slope),
      fmt::format("coverage {:.3f}, mean rho {:.3f}", share, expected));
  return share;
}

TEST(FrequencyCoverage, OfThirtyUsersIsAtLeastThatStated) {
  for (const double slope : {0.0, 3.0}) EXPECT_GE(coverage({30, 60, 20, slope}, 400, 100), 0.94) << slope;
}

TEST(FrequencyCoverage, OfAQuantityOfTheItemAloneIsThatStated) {
  for (const double slope : {0.0, 1.0}) EXPECT_GE(coverage({200, 50, 12, slope, 0}, 400, 40), 0.93) << slope;
}

TEST(FrequencyCoverage, OfFewItemsIsAtLeastThatStated) {
  EXPECT_GE(coverage({1500, 50, 8, 1.0}, 150, 40), 0.94);
}

TEST(FrequencyCoverage, OfManyUsersIsAtLeastThatStated) {
  EXPECT_GE(coverage({1500, 900, 8, 1.0}, 150, 40), 0.94);
}

}  // namespace frequency_coverage_test
}  // namespace gainlens::analyses
