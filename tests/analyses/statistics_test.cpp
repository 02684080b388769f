#include "analyses/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

namespace gainlens::analyses {
namespace statistics_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Statistics, MeanAndPopulationVarianceByHand) {
  EXPECT_DOUBLE_EQ(mean(std::array{1.0, 2.0, 6.0}), 3.0);
  EXPECT_DOUBLE_EQ(population_variance(std::array{1.0, 2.0, 6.0}), 14.0 / 3);  // (4 + 1 + 9) / 3, not / 2
}

TEST(Statistics, MedianOfOddAndEvenCounts) {
  EXPECT_DOUBLE_EQ(median({5, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(median({5, 1, 2, 100}), 3.5);
}

TEST(Statistics, IntervalOfThreeChunks) {
  // mean 2, sample variance 1, standard error 1/sqrt(3), t(0.975, 2) = 4.302653
  const auto interval = mean_interval(std::array{1.0, 2.0, 3.0});
  ASSERT_TRUE(interval);
  EXPECT_NEAR(interval->low, 2 - 4.302653 / std::sqrt(3.0), 1e-6);
  EXPECT_NEAR(interval->high, 2 + 4.302653 / std::sqrt(3.0), 1e-6);
}

TEST(Statistics, OneChunkHasNoInterval) {
  const auto interval = mean_interval(std::array{1.0});
  EXPECT_FALSE(interval);
  EXPECT_THAT(interval.reason(), HasSubstr("at least 2 chunks"));
}

/// 0, 0, 3: the mean is 1, moments about it are (1 + 1 + 4) / 3 = 2 and (-1 - 1 + 8) / 3 = 2.
TEST(Statistics, SkewnessByHand) {
  EXPECT_NEAR(*skewness(std::array{0.0, 0.0, 3.0}), 2 / std::pow(2, 1.5), 1e-12);
  EXPECT_NEAR(*skewness(std::array{0.0, 0.0, -3.0}), -2 / std::pow(2, 1.5), 1e-12);
  EXPECT_NEAR(*skewness(std::array{1.0, 2.0, 3.0}), 0, 1e-12);
  EXPECT_FALSE(skewness(std::array{1.0, 2.0}));
  EXPECT_FALSE(skewness(std::array{1.0, 1.0, 1.0}));
  EXPECT_FALSE(skewness(std::array{0.0, 0.0, 1e-12}, 4));  // rounding of numbers of size 4
  EXPECT_TRUE(skewness(std::array{0.0, 0.0, 1e-5}, 4));
}

TEST(Statistics, TiesShareTheAverageRank) {
  EXPECT_THAT(average_ranks(std::array{5.0, 1.0, 5.0, 9.0}), ElementsAre(2.5, 1, 2.5, 4));
}

TEST(Statistics, PearsonAndItsNaivePByHand) {
  // x centred -1.5 -.5 .5 1.5, y centred -1.5 .5 -.5 1.5: r = (2.25 - .25 - .25 + 2.25) / 5 = 0.8
  // t = 0.8 sqrt(2 / 0.36) = 1.885618; with 2 degrees of freedom p = 1 - t / sqrt(t^2 + 2) = 0.2
  const Correlation c = correlation(std::array{1.0, 2.0, 3.0, 4.0}, std::array{1.0, 3.0, 2.0, 4.0});
  EXPECT_EQ(c.points, 4u);
  EXPECT_NEAR(*c.pearson, 0.8, 1e-12);
  EXPECT_NEAR(*c.pearson_naive_p, 0.2, 1e-12);
  EXPECT_NEAR(*c.spearman, 0.8, 1e-12);
}

TEST(Statistics, SpearmanSeesOrderAlone) {
  const Correlation c = correlation(std::array{1.0, 2.0, 3.0, 4.0}, std::array{1.0, 10.0, 100.0, 1e6});
  EXPECT_DOUBLE_EQ(*c.spearman, 1.0);
  EXPECT_DOUBLE_EQ(*c.spearman_naive_p, 0.0);
  EXPECT_LT(*c.pearson, 0.8);
}

TEST(Statistics, ConstantSideIsNamed) {
  const Correlation c = correlation(std::array{1.0, 2.0, 3.0}, std::array{0.1, 0.1, 0.1}, {"BOS mass", "K"});
  EXPECT_FALSE(c.pearson);
  EXPECT_EQ(c.pearson.reason(), "K is constant");
  EXPECT_EQ(c.pearson_naive_p.reason(), "K is constant");
  EXPECT_EQ(c.spearman.reason(), "K is constant");
}

TEST(Statistics, TwoPointsAreNoCorrelation) {
  EXPECT_THAT(correlation(std::array{1.0, 2.0}, std::array{3.0, 5.0}).pearson.reason(), HasSubstr("2 points"));
}

TEST(Statistics, WithinGroupsTheSignCanTurn) {
  // Two groups: y falls within each group and rises from group to group.
  const std::array x{1.0, 2.0, 3.0, 11.0, 12.0, 13.0}, y{3.0, 2.0, 1.0, 13.0, 12.0, 11.0};
  const std::array<std::size_t, 6> group{0, 0, 0, 1, 1, 1};
  EXPECT_GT(*correlation(x, y).pearson, 0.9);
  const Correlation within = correlation_within(x, y, group);
  EXPECT_DOUBLE_EQ(*within.pearson, -1.0);
  EXPECT_DOUBLE_EQ(*within.spearman, -1.0);
}

TEST(Statistics, WithinGroupsLosesADegreeOfFreedomForEachGroup) {
  // Without the group means: x = (-1 0 1 -1 0 1), y = (-1 1 0 -1 1 0), r = 2 / 4.
  const std::array x{1.0, 2.0, 3.0, 11.0, 12.0, 13.0}, y{0.0, 2.0, 1.0, 5.0, 7.0, 6.0};
  const std::array<std::size_t, 6> group{0, 0, 0, 1, 1, 1};
  const Correlation within = correlation_within(x, y, group);
  EXPECT_NEAR(*within.pearson, 0.5, 1e-12);
  // t = 0.5 sqrt(3 / 0.75) = 1 with 3 degrees of freedom: p = 0.391002
  EXPECT_NEAR(*within.pearson_naive_p, 0.391002, 1e-6);
}

TEST(Statistics, EqualHeadsInEveryLayerAreConstantDespiteRounding) {
  const std::array x{0.1, 0.1, 0.1, 0.7, 0.7, 0.7}, y{1.0, 2.0, 3.0, 3.0, 1.0, 2.0};
  const std::array<std::size_t, 6> group{0, 0, 0, 1, 1, 1};
  EXPECT_EQ(correlation_within(x, y, group).pearson.reason(), "x is constant");
}

TEST(Statistics, AGroupOfOneSaysNothing) {
  const std::array x{1.0, 2.0, 3.0}, y{1.0, 2.0, 3.0};
  const std::array<std::size_t, 3> group{0, 1, 2};
  const Correlation within = correlation_within(x, y, group);
  EXPECT_EQ(within.points, 0u);
  EXPECT_FALSE(within.pearson);
}

TEST(Measured, MissingIsNullWithItsReason) {
  OrderedJson json;
  put(json, "r", Measured(0.5));
  put(json, "p", Measured::none("too few"));
  put(json, "interval", Maybe<Interval>(Interval{1, 2}));
  EXPECT_EQ(json.dump(), R"({"r":0.5,"p":null,"p_reason":"too few","interval":[1.0,2.0]})");
}

TEST(Rounding, NumbersThatDifferByRoundingAloneAreMadeEqual) {
  const double tiny = 1e-10;
  EXPECT_EQ(without_rounding(std::array{0.5, -0.5 - tiny, tiny, 0.7, -0.7}, 1),
            (std::vector<double>{0.5, -0.5, 0, 0.7, -0.7}));
  EXPECT_EQ(without_rounding(std::array{3.0 / 7, -3.0 / 7}, 1), (std::vector<double>{3.0 / 7, -3.0 / 7}));
  EXPECT_TRUE(alike(std::array{0.5, 0.5 + tiny}, 1));
  EXPECT_FALSE(alike(std::array{0.5, 0.5 + tiny}, 0));  // exact
  EXPECT_FALSE(alike(std::array{0.5, 0.500001}, 1));
  EXPECT_EQ(correlation(std::array{1.0, 1.0 + 1e-12, 1.0}, std::array{1.0, 2.0, 3.0}).pearson.reason(),
            "x is constant");
}

}  // namespace statistics_test
}  // namespace gainlens::analyses
