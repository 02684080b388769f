#include "analyses/estimator_truth.h"

#include "support/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace gainlens::analyses {
namespace estimator_truth_test {

using bft::Estimator;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::refusal_of;

double n_eff_of(const std::vector<double>& weights) {
  double squares = 0;
  for (const double weight : weights) squares += weight * weight;
  return 1 / squares;
}

const EstimatorAccuracy& of(const TruthCell& cell, Estimator estimator) {
  return cell.estimators.at(static_cast<std::size_t>(estimator));
}

/// One run for all tests of what theory says. 4 standard errors each, of about 20 comparisons.
const EstimatorTruth& truth() {
  static const EstimatorTruth made = estimator_truth({.draws = 4000, .n_eff = {1, 2, 20, 80}, .seed = 3, .threads = 2});
  return made;
}

void expect_bias(TruthScenario scenario, std::size_t position, Estimator estimator, double expected) {
  const EstimatorAccuracy& accuracy = of(truth().cell(scenario, position), estimator);
  ASSERT_TRUE(accuracy.bias) << accuracy.bias.reason();
  EXPECT_NEAR(*accuracy.bias, expected, 4 * *accuracy.bias_error + 1e-12)
      << name_of(scenario) << " " << name_of(estimator) << " at " << truth().options.n_eff[position];
}

TEST(SimulatedQuery, HasTheNEffThatWasAsked) {
  Random random(1);
  for (const TruthScenario scenario : truth_scenarios) {
    for (const double n : {1.0, 1.001, 2.0, 37.5, 200.0}) {
      const SimulatedQuery query = simulate_query(scenario, n, 0.25, random);
      const double found = n_eff_of(query.weights);
      if (scenario == TruthScenario::noisy_tokens)  // noise on the scores moves it
        EXPECT_NEAR(found / n, 1, 0.5);
      else
        EXPECT_NEAR(found / n, 1, 1e-9) << name_of(scenario);
    }
  }
  EXPECT_EQ(sharpness_for({0.1, 0.3, 0.2}, 1), std::numeric_limits<double>::infinity());
  EXPECT_NEAR(sharpness_for({0, std::log(3.0)}, 1.6), 1, 1e-12);  // weights 1/4, 3/4
}

TEST(SimulatedQuery, NoiseOfAScoreIsTheLengthOfItsGradient) {
  Random random(2);
  for (const TruthScenario scenario : truth_scenarios) {
    const bool noisy = scenario == TruthScenario::noisy_tokens, dependent = scenario == TruthScenario::dependent;
    const SimulatedQuery query = simulate_query(scenario, 30, 0.25, random);
    const double length = std::hypot(query.score_gradient[0], query.score_gradient[1]);
    const double of_score = length == 0 ? 0 : length / std::sqrt(query.token_precision[0]);
    EXPECT_NEAR(of_score, query.score_noise, 1e-12) << name_of(scenario);
    EXPECT_EQ(query.score_noise > 0, noisy || dependent) << name_of(scenario);
    if (noisy) {
      EXPECT_EQ(query.score_noise, noisy_score_noise);
    }
    if (dependent) {  // scores N(0, omega^2) of n_eff 30 of 256: e^(-omega^2) is about 30/256
      EXPECT_NEAR(query.score_noise, std::sqrt(std::log(256.0 / 30)), 0.5);
    }
  }
}

TEST(RunningSpread, BlocksAddUp) {
  RunningSpread left, right, none;
  for (const double x : {1e9 + 1, 1e9 + 2}) left.add(x);
  for (const double x : {1e9 + 3, 1e9 + 6, 1e9 + 8}) right.add(x);
  left.add(none);
  left.add(right);
  EXPECT_EQ(left.count, 5);
  EXPECT_DOUBLE_EQ(left.mean, 1e9 + 4);
  EXPECT_NEAR(left.squares, 34, 1e-5);  // 9 + 4 + 1 + 4 + 16
  EXPECT_NEAR(left.deviation(), std::sqrt(8.5), 1e-6);
  EXPECT_NEAR(left.error(), std::sqrt(1.7), 1e-6);
}

TEST(EstimatorTruth, NaiveIsUnbiasedOfIndependentWeights) {
  for (const TruthScenario scenario : {TruthScenario::independent, TruthScenario::unit_variance}) {
    for (const std::size_t position : {1u, 2u, 3u}) expect_bias(scenario, position, Estimator::reml_naive, 0);
  }
}

TEST(EstimatorTruth, BiasesOfIndependentWeightsAreThoseOfTheory) {
  // E S = sigma^2 (1 - 1/n). With sigma^2 = r sigma0^2 the mean of reml is (r (1 - 1/n) + 1) / (n + 1) sigma0^2,
  // against r / n sigma0^2; of reml_conjugate (r (n - 1) + 1) / n^2.
  for (const auto& [scenario, r] : {std::pair{TruthScenario::independent, 1.0}, {TruthScenario::unit_variance, 64.0}}) {
    for (std::size_t position = 0; position < 4; ++position) {
      const double n = truth().options.n_eff[position];
      expect_bias(scenario, position, Estimator::reml, (r * (1 - 1 / n) + 1) / (n + 1) * n / r - 1);
      expect_bias(scenario, position, Estimator::reml_conjugate, (r * (n - 1) + 1) / (n * r) - 1);
      expect_bias(scenario, position, Estimator::kish, ((truth_keys - 1) * r + 1) / (truth_keys * r) - 1);
      expect_bias(scenario, position, Estimator::delta, 0);
    }
  }
  // the statement that the prior is negligible: at n = 80 twice the truth
  EXPECT_NEAR(1 + *of(truth().cell(TruthScenario::independent, 3), Estimator::reml).bias, 1.963, 0.03);
}

TEST(EstimatorTruth, CoverageOfKnownVarianceIsExact) {
  const boost::math::normal normal;
  const auto expect_coverage = [](const EstimatorAccuracy& accuracy, double expected) {
    EXPECT_NEAR(*accuracy.coverage, expected, 4 * std::sqrt(expected * (1 - expected) / 4000));
  };
  const double within = 2 * boost::math::cdf(normal, normal_interval) - 1;
  for (std::size_t position = 0; position < 4; ++position)
    expect_coverage(of(truth().cell(TruthScenario::independent, position), Estimator::delta), within);
  // n = 1: e is one value, and V of reml sigma0^2 / 2 or, of values 64 times as wide, sigma^2 / 128.
  expect_coverage(of(truth().cell(TruthScenario::independent, 0), Estimator::reml),
                  2 * boost::math::cdf(normal, normal_interval / std::sqrt(2.0)) - 1);
  expect_coverage(of(truth().cell(TruthScenario::unit_variance, 0), Estimator::reml),
                  2 * boost::math::cdf(normal, normal_interval / std::sqrt(128.0)) - 1);
  const boost::math::students_t t(3);  // of variance 3
  expect_coverage(of(truth().cell(TruthScenario::heavy_tails, 0), Estimator::reml_conjugate),
                  2 * boost::math::cdf(t, normal_interval * std::sqrt(3.0)) - 1);
}

TEST(EstimatorTruth, OneKeyLeavesNaiveUndefinedAndTheSandwichAtZero) {
  const TruthCell& one = truth().cell(TruthScenario::independent, 0);
  const EstimatorAccuracy& naive = of(one, Estimator::reml_naive);
  EXPECT_EQ(naive.undefined, 4000);
  EXPECT_FALSE(naive.bias);
  EXPECT_EQ(naive.coverage.reason(), "not defined at n_eff = 1");
  EXPECT_EQ(*of(one, Estimator::sandwich).bias, -1);
  EXPECT_EQ(*of(one, Estimator::sandwich).coverage, 0);
  EXPECT_EQ(of(one, Estimator::sandwich).undefined, 0);
}

TEST(EstimatorTruth, ASelectedKeyIsTheLargestOfItsScores) {
  // n = 1: the score of the key is the largest of 256 normals, and its value has correlation 0.5 with it. The mean of
  // that maximum is 2.8269 (numerical integral of its density), so e lies 1.413 deviations above the mean.
  const TruthCell& one = truth().cell(TruthScenario::dependent, 0);
  EXPECT_NEAR(one.shift, 0.5 * 2.8269, 4 * std::sqrt(one.true_variance / truth().prior_variance / 16000));
  EXPECT_LT(one.true_variance, truth().prior_variance);
  // At many keys it is that of the tilted distribution, 0.5 times the sharpness; that of n = 80 is near 1.1.
  EXPECT_NEAR(truth().cell(TruthScenario::dependent, 3).shift, 0.55, 0.05);
  EXPECT_EQ(truth().cell(TruthScenario::independent, 3).shift, 0);
  // The intervals are about the mean of e.
  EXPECT_NEAR(*of(truth().cell(TruthScenario::dependent, 3), Estimator::reml_conjugate).coverage, 0.95, 0.02);
  EXPECT_GT(*of(truth().cell(TruthScenario::dependent, 3), Estimator::delta_weight_free).bias, 2);
}

TEST(EstimatorTruth, DeltaIsRightOfNoiseAndTheOthersTakeSignalForIt) {
  const TruthCell& few = truth().cell(TruthScenario::noisy_tokens, 1);
  EXPECT_LT(std::abs(*of(few, Estimator::delta).bias), 0.06);
  EXPECT_GT(*of(few, Estimator::reml).bias, 5);
  EXPECT_GT(*of(few, Estimator::delta_weight_free).bias, *of(few, Estimator::reml).bias);
  // With one key there is nothing but its noise, of variance 0.09 sigma0^2.
  const TruthCell& one = truth().cell(TruthScenario::noisy_tokens, 0);
  EXPECT_NEAR(one.true_variance, 0.09 * truth().prior_variance, 4 * one.truth_error);
}

TEST(EstimatorTruth, EqualValuesShowThePriorAlone) {
  const TruthCell& cell = truth().cell(TruthScenario::equal_values, 2);
  EXPECT_EQ(cell.true_variance, 0);
  EXPECT_NEAR(*of(cell, Estimator::reml).mean_variance, truth().prior_variance / 21, 1e-12);
  EXPECT_NEAR(*of(cell, Estimator::reml_naive).mean_variance, 0, 1e-12);
  EXPECT_EQ(of(cell, Estimator::reml).coverage.reason(), "the true variance is 0");
}

TEST(EstimatorTruth, WhereAnEstimatorIsTrusted) {
  EXPECT_THAT(truth().trusted(TruthScenario::independent, Estimator::reml_naive).unbiased, ElementsAre(2, 20, 80));
  EXPECT_THAT(truth().trusted(TruthScenario::independent, Estimator::reml).unbiased, ElementsAre(2));
  EXPECT_THAT(truth().trusted(TruthScenario::independent, Estimator::kish).covering, ElementsAre(1, 2, 20, 80));
  EXPECT_THAT(truth().trusted(TruthScenario::unit_variance, Estimator::reml).covering, ElementsAre(20, 80));
  EXPECT_THAT(truth().trusted(TruthScenario::noisy_tokens, Estimator::reml).unbiased, ElementsAre());
}

TEST(EstimatorTruth, TheNumbersDoNotDependOnThreadsButOnTheSeed) {
  const TruthOptions options{.draws = 600, .dimensions = 16, .n_eff = {1, 5}, .seed = 9, .threads = 1};
  TruthOptions threads = options, seed = options;
  threads.threads = 3;
  seed.seed = 10;
  const std::string numbers = to_json(estimator_truth(options)).dump();
  EXPECT_EQ(numbers, to_json(estimator_truth(threads)).dump());
  EXPECT_NE(numbers, to_json(estimator_truth(seed)).dump());
}

TEST(EstimatorTruth, EveryCellIsReported) {
  std::vector<TruthScenario> seen;
  estimator_truth({.draws = 100, .n_eff = {3}}, [&](const TruthCell& cell) { seen.push_back(cell.scenario); });
  EXPECT_EQ(seen, std::vector<TruthScenario>(truth_scenarios.begin(), truth_scenarios.end()));
}

TEST(EstimatorTruth, WrongOptionsAreNamed) {
  const auto refused = [](const TruthOptions& options) { return refusal_of([&] { estimator_truth(options); }); };
  EXPECT_EQ(refused({.draws = 99}), "--draws: 99; must be 100 to 10000000");
  EXPECT_EQ(refused({.dimensions = 0}), "--dimensions: 0; must be 1 to 65536");
  EXPECT_THAT(refused({.n_eff = {}}), HasSubstr("--n-eff: no number; give some"));
  EXPECT_THAT(refused({.n_eff = {0.5}}), HasSubstr("--n-eff: 0.5; must be 1 to 200"));
  EXPECT_THAT(refused({.n_eff = {NAN}}), HasSubstr("--n-eff: nan; must be 1 to 200"));
  EXPECT_THAT(refused({.n_eff = {5, 5}}), HasSubstr("--n-eff: 5 after 5; must rise"));
}

}  // namespace estimator_truth_test
}  // namespace gainlens::analyses
