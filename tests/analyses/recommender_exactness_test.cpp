// Differences of hit rates are whole numbers of hits over one number of users. Every test over seeds has to give what
// whole numbers give, whatever the rounding of the means would be.

#include "analyses/pooled_data_sets.h"
#include "analyses/recommender_comparison.h"
#include "core/random.h"
#include "runfile/made_recommend_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <vector>

namespace gainlens::analyses {
namespace recommender_exactness_test {

using ::testing::HasSubstr;

struct Hits {
  std::int64_t baseline, candidate;
};

/// Runs with these numbers of hits among the first users of a group that starts at user `first`.
PairedUnits runs_of(const std::vector<Hits>& seeds, std::size_t users, std::size_t first = 0) {
  PairedUnits runs{seeds.size(), users, std::vector<double>(seeds.size() * users, 0.0f), {}};
  runs.candidate = runs.baseline;
  for (std::size_t seed = 0; seed < seeds.size(); ++seed) {
    const auto start = static_cast<std::ptrdiff_t>(seed * users + first);
    std::fill_n(runs.baseline.begin() + start, seeds[seed].baseline, 1.0f);
    std::fill_n(runs.candidate.begin() + start, seeds[seed].candidate, 1.0f);
  }
  return runs;
}

std::vector<Hits> with_gains(const std::vector<std::int64_t>& gains, std::size_t users, Random& random) {
  std::vector<Hits> hits;
  for (const std::int64_t gain : gains) {
    const auto before = static_cast<std::int64_t>(10 + random.below(users / 4));
    hits.push_back({before, before + gain});
  }
  return hits;
}

/// What whole numbers say of the differences: p of each test as counts of patterns of signs.
struct Counted {
  std::size_t pairs = 0;
  double sign_p = 1, rank_p = 1, flip_p = 1;
};

Counted counted_p(const std::vector<std::int64_t>& gains) {
  std::vector<std::int64_t> others, doubled_ranks;
  std::copy_if(gains.begin(), gains.end(), std::back_inserter(others), [](std::int64_t gain) { return gain != 0; });
  for (const std::int64_t gain : others) {
    std::int64_t below = 0, tied = 0;
    for (const std::int64_t other : others) {
      below += std::abs(other) < std::abs(gain) ? 1 : 0;
      tied += std::abs(other) == std::abs(gain) ? 1 : 0;
    }
    doubled_ranks.push_back(2 * below + tied + 1);
  }
  Counted result{others.size()};
  std::int64_t positive = 0, ranks = 0, sum = 0;
  for (std::size_t i = 0; i < others.size(); ++i) {
    positive += others[i] > 0 ? 1 : 0;
    ranks += others[i] > 0 ? doubled_ranks[i] : 0;
    sum += others[i];
  }
  const std::uint64_t patterns = std::uint64_t{1} << others.size();
  double fewer = 0, more = 0, low = 0, high = 0, extreme = 0;
  for (std::uint64_t pattern = 0; pattern < patterns; ++pattern) {
    std::int64_t positive_here = 0, ranks_here = 0, sum_here = 0;
    for (std::size_t i = 0; i < others.size(); ++i) {
      const bool up = (pattern >> i & 1) != 0;
      positive_here += up ? 1 : 0;
      ranks_here += up ? doubled_ranks[i] : 0;
      sum_here += up ? std::abs(others[i]) : -std::abs(others[i]);
    }
    fewer += positive_here <= positive ? 1 : 0;
    more += positive_here >= positive ? 1 : 0;
    low += ranks_here <= ranks ? 1 : 0;
    high += ranks_here >= ranks ? 1 : 0;
    extreme += std::abs(sum_here) >= std::abs(sum) ? 1 : 0;
  }
  const auto all = static_cast<double>(patterns);
  result.sign_p = std::min(1.0, 2 * std::min(fewer, more) / all);
  result.rank_p = std::min(1.0, 2 * std::min(low, high) / all);
  result.flip_p = extreme / all;
  return result;
}

void expect_whole_numbers(const std::vector<std::int64_t>& gains, std::size_t users, Random& random) {
  const SeedMeans means = seed_means(runs_of(with_gains(gains, users, random), users));
  const SeedComparison found = compare_seeds(means);
  for (std::size_t seed = 0; seed < gains.size(); ++seed)
    EXPECT_EQ(means.differences[seed], static_cast<double>(gains[seed]) / static_cast<double>(users));
  const bool same = std::all_of(gains.begin(), gains.end(), [&](std::int64_t gain) { return gain == gains.front(); });
  if (same) {
    for (const Measured& p : {found.t, found.naive_p, found.signs.p, found.ranks.p, found.flips.p})
      EXPECT_EQ(p.reason(), "the difference is the same with every seed");
    return;
  }
  std::int64_t sum = 0, squares = 0;
  for (const std::int64_t gain : gains) {
    sum += gain;
    squares += gain * gain;
  }
  const auto n = static_cast<std::int64_t>(gains.size());
  const double t =
      static_cast<double>(sum) / std::sqrt(static_cast<double>(n * squares - sum * sum) / static_cast<double>(n - 1));
  EXPECT_NEAR(*found.t, t, 1e-12 * std::max(1.0, std::abs(t)));
  const Counted expected = counted_p(gains);
  EXPECT_EQ(found.ranks.pairs, expected.pairs);
  ASSERT_EQ(static_cast<bool>(found.ranks.p), expected.pairs >= 6);
  if (!found.ranks.p) return;
  EXPECT_TRUE(found.ranks.exact && found.flips.exact);
  EXPECT_NEAR(*found.signs.p, expected.sign_p, 1e-12);
  EXPECT_EQ(*found.ranks.p, expected.rank_p);
  EXPECT_EQ(*found.flips.p, expected.flip_p);
}

TEST(Exactness, TestsOverSeedsAreThoseOfWholeNumbers) {
  Random random(11);
  for (const std::size_t users : {1429u, 588u, 161u, 22363u}) {
    for (std::size_t seeds = 2; seeds <= 12; ++seeds) {
      for (const std::uint64_t reach : {1u, 3u, 9u}) {  // few sizes: many ties and zeros
        std::vector<std::int64_t> gains;
        for (std::size_t seed = 0; seed < seeds; ++seed)
          gains.push_back(static_cast<std::int64_t>(random.below(2 * reach + 1)) - static_cast<std::int64_t>(reach) +
                          1);
        expect_whole_numbers(gains, users, random);
      }
      expect_whole_numbers(std::vector<std::int64_t>(seeds, 3), users, random);
    }
  }
}

/// The difference of the two means differs in its last bit: 100/1429 - 97/1429 is not 146/1429 - 143/1429.
TEST(Exactness, TwoEqualGainsAreNoEvidence) {
  ASSERT_NE(100.0 / 1429 - 97.0 / 1429, 146.0 / 1429 - 143.0 / 1429);
  const SeedComparison found = compare_seeds(seed_means(runs_of({{97, 100}, {143, 146}}, 1429)));
  EXPECT_EQ(found.naive_p.reason(), "the difference is the same with every seed");
  EXPECT_FALSE(found.interval);
}

TEST(Exactness, TiesOfSignedRanksAreTies) {
  Random random(3);
  const std::vector<std::int64_t> gains = {4, 6, 1, -2, 2, -3, 2, 5, 5, 8};
  for (int repeat = 0; repeat < 20; ++repeat)
    EXPECT_EQ(*compare_seeds(seed_means(runs_of(with_gains(gains, 1429, random), 1429))).ranks.p, 46.0 / 1024);
}

/// Strata and the error over seeds and users: nothing of it may rest on rounding either.
TEST(Exactness, AGroupOfUsersIsExactToo) {
  std::vector<std::size_t> group(161);
  for (std::size_t i = 0; i < group.size(); ++i) group[i] = 500 + i;
  Random random(4);
  for (int repeat = 0; repeat < 50; ++repeat) {
    const PairedUnits runs = runs_of(with_gains({2, 2, 2}, 161, random), 1429, 500);
    EXPECT_FALSE(compare_seeds(seed_means(runs, group)).naive_p);
    const std::array one = {SignedGroup{group, 1}};
    const auto gain = crossed_gain(runs, one, GainScale::difference);
    ASSERT_TRUE(gain) << gain.reason();
    EXPECT_EQ(*gain->seed_variance, 0);
  }
}

/// Sums of other metrics round. Equal gains of different users are equal up to the precision of a stored value.
TEST(Exactness, ASpreadOfOtherMetricsAtRoundingIsNoResult) {
  // reciprocal ranks: 1/2 is 1/3 + 1/6, but not in single precision
  const std::vector<double> before = {20, 20, 20, 20, 20, 20}, after = {2, 20, 20, 20, 3, 6};
  const PairedUnits runs = paired_users({RankingMetric::Kind::reciprocal_rank, 10}, before, after, 2, 3);
  const SeedMeans means = seed_means(runs);
  EXPECT_EQ(means.differences[0], means.differences[1]);
  EXPECT_EQ(compare_seeds(means).naive_p.reason(), "the difference is the same with every seed");
}

TEST(Exactness, ADataSetWithOneDifferenceHasNoJointFlips) {
  const auto set = [](const std::vector<double>& differences) {
    SeededDifferences runs{{0, 1, 2, 3, 4, 5, 6}, differences};
    const Measured naive = compare_seeds({differences, differences, differences}).naive_p;
    return DataSetGain{"a", runs, naive, Maybe<CrossedEstimate>::none("not needed")};
  };
  const DataSetGain copies = set(std::vector<double>(7, 0.25)), varied = set({1, 2, 3, 4, 3, 2, 1});
  EXPECT_TRUE(pool_data_sets(std::array{varied, varied}).flips.p);
  EXPECT_THAT(pool_data_sets(std::array{varied, copies}).flips.p.reason(), HasSubstr("the same with every seed"));
}

/// A seed that gains as much on one data set as it loses on the other has no sign.
TEST(Exactness, JointFlipsSeeAZeroInSpiteOfRounding) {
  const std::vector<double> one = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6}, other = {-0.3, -0.6, -0.9, -1.2, -1.5, -1.8};
  const std::vector<std::uint64_t> seeds = {0, 1, 2, 3, 4, 5};
  EXPECT_EQ(joint_flips(std::array{SeededDifferences{seeds, one}, SeededDifferences{seeds, other}}, {}).pairs, 0u);
}

}  // namespace recommender_exactness_test
}  // namespace gainlens::analyses
