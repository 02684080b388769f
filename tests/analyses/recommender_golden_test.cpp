#include "analyses/gain_regression.h"
#include "analyses/means_of_runs.h"
#include "analyses/pooled_data_sets.h"
#include "analyses/seed_comparison.h"
#include "analyses/seed_unit.h"
#include "core/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>

namespace gainlens::analyses {
namespace recommender_golden_test {

constexpr double near = 1e-10;

/// Numbers of SciPy and statsmodels, or by brute force in numpy; made by make_recommender_golden.py.
const Json& golden() {
  static const Json json =
      read_json_file(std::filesystem::path(GAINLENS_SOURCE_DIR) / "tests/analyses/recommender_golden.json");
  return json;
}

std::vector<double> numbers(const Json& json) {
  return json.get<std::vector<double>>();
}

PairedUnits users_of(const Json& json, std::size_t seeds, std::size_t users) {
  const auto values = [&](const char* arm) {
    const auto single = json[arm].get<std::vector<float>>();
    return std::vector<double>(single.begin(), single.end());
  };
  return {seeds, users, values("baseline"), values("candidate")};
}

void expect_crossed(const Maybe<CrossedEstimate>& found, const Json& expected) {
  ASSERT_TRUE(found) << found.reason();
  const auto expect = [&](double value, const char* name) {
    EXPECT_NEAR(value, expected[name].get<double>(), near * std::max(1.0, std::abs(expected[name].get<double>())))
        << name;
  };
  expect(found->value, "value");
  expect(*found->seed_variance, "seed_variance");
  expect(found->unit_variance, "unit_variance");
  expect(*found->noise_variance, "noise_variance");
  expect(*found->error, "error");
  expect(*found->degrees_of_freedom, "df");
  expect(*found->p, "p");
  EXPECT_NEAR(found->interval->low, expected["interval"][0].get<double>(), near);
  EXPECT_NEAR(found->interval->high, expected["interval"][1].get<double>(), near);
}

TEST(RecommenderGolden, MetricsOfRanks) {
  const Json& expected = golden()["metrics"];
  const std::vector<double> ranks = numbers(expected["ranks"]);
  for (const RankingMetric& metric :
       {RankingMetric{RankingMetric::Kind::hit, 10}, RankingMetric{RankingMetric::Kind::gain, 10},
        RankingMetric{RankingMetric::Kind::reciprocal_rank}, RankingMetric{RankingMetric::Kind::reciprocal_rank, 10}}) {
    for (std::size_t i = 0; i < ranks.size(); ++i)
      EXPECT_NEAR(metric.value_at(ranks[i]), expected[metric.name()][i].get<double>(), near) << metric.name();
  }
}

TEST(RecommenderGolden, SeedsAgreeWithSciPy) {
  ASSERT_EQ(golden()["seeds"].size(), 2u);
  for (const Json& expected : golden()["seeds"]) {
    const SeedComparison found =
        compare_seeds(testing::means_of_runs(numbers(expected["baseline"]), numbers(expected["candidate"])));
    EXPECT_NEAR(found.baseline.mean, expected["means"][0].get<double>(), near);
    EXPECT_NEAR(*found.candidate.deviation, expected["deviations"][1].get<double>(), near);
    EXPECT_NEAR(*found.relative, expected["relative"].get<double>(), near);
    EXPECT_NEAR(*found.correlation, expected["correlation"].get<double>(), near);
    EXPECT_NEAR(*found.t, expected["t"].get<double>(), near);
    EXPECT_NEAR(*found.naive_p, expected["p"].get<double>(), near);
    EXPECT_NEAR(found.interval->low, expected["interval"][0].get<double>(), near);
    EXPECT_NEAR(found.interval->high, expected["interval"][1].get<double>(), near);
    EXPECT_EQ(found.signs.pairs, expected["pairs"].get<std::size_t>());
    EXPECT_NEAR(*found.signs.p, expected["sign_p"].get<double>(), near);
    EXPECT_NEAR(*found.ranks.p, expected["rank_p"].get<double>(), near);
    EXPECT_NEAR(*found.flips.p, expected["flip_p"].get<double>(), near);
  }
}

TEST(RecommenderGolden, ManySignedRanksWithTiesUseTheNormalApproximation) {
  const SignedTest found = signed_rank_test(numbers(golden()["long_ranks"]["differences"]));
  EXPECT_EQ(found.pairs, golden()["long_ranks"]["pairs"].get<std::size_t>());
  EXPECT_FALSE(found.exact);
  EXPECT_NEAR(*found.p, golden()["long_ranks"]["p"].get<double>(), near);
}

TEST(RecommenderGolden, SeedsCrossedWithUsers) {
  const Json& expected = golden()["crossed"];
  const PairedUnits users = users_of(expected, expected["seeds"], expected["users"]);
  const std::array all = {all_units(users)};
  expect_crossed(crossed_gain(users, all, GainScale::difference), expected["difference"]);
  expect_crossed(crossed_gain(users, all, GainScale::log_ratio), expected["log_ratio"]);
  expect_crossed(crossed_gain(users, all, GainScale::difference, expected["unit"].get<std::vector<std::size_t>>()),
                 expected["by_unit"]);
  const std::array contrast = {SignedGroup{{0, 1, 2, 3, 4, 5}, 1}, SignedGroup{{6, 7, 8, 9, 10, 11, 12, 13}, -1}};
  expect_crossed(crossed_gain(users, contrast, GainScale::difference), expected["contrast"]);
  const auto found = crossed_gain(users, all, GainScale::difference);
  EXPECT_NEAR(*found->seed_variance, expected["anova_table"][0].get<double>(), near);
  EXPECT_NEAR(found->unit_variance, expected["anova_table"][1].get<double>(), near);
  EXPECT_NEAR(*found->noise_variance, expected["anova_table"][2].get<double>(), near);
}

TEST(RecommenderGolden, BootstrapAgreesWithAllResamples) {
  const Json& expected = golden()["pigeonhole"];
  const PairedUnits users = users_of(expected, 3, 4);
  const BootstrapGains found = bootstrap_gain(users, std::array{all_units(users)}, {100'000, 3});
  const auto expect = [&](const Maybe<SeedUnitBootstrap>& gain, const Json& exact) {
    ASSERT_TRUE(gain) << gain.reason();
    EXPECT_NEAR(gain->error, exact["error"].get<double>(), 0.01 * exact["error"].get<double>());
    EXPECT_NEAR(gain->p, exact["p"].get<double>(), 0.01);
    EXPECT_NEAR(gain->range.low, exact["quantiles"][0].get<double>(), 0.05);
    EXPECT_NEAR(gain->range.high, exact["quantiles"][1].get<double>(), 0.05);
  };
  expect(found.difference, expected["difference"]);
  expect(found.log_ratio, expected["log_ratio"]);
}

TEST(RecommenderGolden, PooledPAgreeWithSciPyAndStatsmodels) {
  const Json& expected = golden()["pooled"];
  const std::vector<double> p = numbers(expected["p"]), signs = numbers(expected["signs"]);
  EXPECT_NEAR(fisher(p).chi_squared, expected["fisher"][0].get<double>(), near);
  EXPECT_NEAR(fisher(p).p, expected["fisher"][1].get<double>(), near);
  EXPECT_NEAR(stouffer(p, signs).z, expected["stouffer"][0].get<double>(), near);
  EXPECT_NEAR(stouffer(p, signs).p, expected["stouffer"][1].get<double>(), near);
  ASSERT_EQ(expected["random_effects"].size(), 2u);
  for (const Json& one : expected["random_effects"]) {
    std::vector<Estimate> estimates;
    for (std::size_t i = 0; i < one["values"].size(); ++i) estimates.push_back({one["values"][i], one["errors"][i], 1});
    const auto found = random_effects(estimates);
    ASSERT_TRUE(found);
    EXPECT_NEAR(found->mean, one["mean"].get<double>(), near);
    EXPECT_NEAR(found->between_variance, std::max(0.0, one["tau2"].get<double>()), near);
    EXPECT_NEAR(found->heterogeneity_q, one["q"].get<double>(), 1e-8);
    EXPECT_NEAR(found->heterogeneity_p, one["q_p"].get<double>(), near);
    EXPECT_NEAR(found->error, one["error"].get<double>(), near);
    EXPECT_NEAR(found->interval.low, one["interval"][0].get<double>(), near);
    EXPECT_NEAR(found->p, one["p"].get<double>(), near);
  }
}

TEST(RecommenderGolden, JointFlipsAgreeWithAllPatterns) {
  const Json& expected = golden()["flips"];
  const std::array data_sets = {SeededDifferences{{1, 2, 3, 4, 5, 6, 7, 8, 9}, numbers(expected["first"])},
                                SeededDifferences{{1, 2, 3, 4, 5, 6, 7, 8}, numbers(expected["second"])}};
  const SignedTest found = joint_flips(data_sets, {});
  EXPECT_EQ(found.arrangements, 512);
  EXPECT_NEAR(found.statistic, expected["statistic"].get<double>(), near);
  EXPECT_NEAR(*found.p, expected["p"].get<double>(), near);
  EXPECT_NEAR(*seed_correlation(data_sets), expected["correlation"].get<double>(), near);
}

TEST(RecommenderGolden, RegressionAgreesWithStatsmodelsWithoutEachItem) {
  const Json& expected = golden()["regression"];
  const PairedUnits users = users_of(expected, expected["seeds"], expected["users"]);
  const auto found = gain_regression(users, expected["frequency"].get<std::vector<std::int64_t>>(),
                                     expected["length"].get<std::vector<std::int64_t>>(),
                                     expected["target"].get<std::vector<std::size_t>>());
  ASSERT_TRUE(found) << found.reason();
  EXPECT_EQ(found->clusters, expected["clusters"].get<std::size_t>());
  const std::array slopes = {&found->intercept, &found->frequency, &found->length};
  for (std::size_t j = 0; j < slopes.size(); ++j) {
    EXPECT_NEAR(slopes[j]->value, expected["values"][j].get<double>(), 1e-9);
    EXPECT_NEAR(slopes[j]->clustered_error, expected["errors"][j].get<double>(), 1e-9);
    EXPECT_NEAR(*slopes[j]->clustered_p, expected["p"][j].get<double>(), 1e-8);
    expect_crossed(slopes[j]->crossed, expected["crossed"][j]);
  }
}

}  // namespace recommender_golden_test
}  // namespace gainlens::analyses
