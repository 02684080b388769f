#include "bft/estimators.h"

#include "core/random.h"
#include "support/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/random/normal_distribution.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace gainlens::bft {
namespace estimators_test {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsNan;
using testing::refusal_of;
using Numbers = std::vector<double>;

/// Weights and values of one dimension.
struct Keys {
  Numbers weights;
  Numbers values;
};

/// Random as the distributions of Boost want it.
struct Engine {
  using result_type = std::uint64_t;
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }
  result_type operator()() { return random.bits(); }
  Random random;
};

double variance(Estimator estimator, const Keys& keys, const EstimatorOptions& options = {}) {
  return observe(estimator, {keys.weights, keys.values, 1}, options).variance.at(0);
}

const EstimatorOptions with_noise = {.score_noise = 0.5};

/// Four keys of weights 1/2, 1/4, 1/8, 1/8: sum p^2 = 11/32, n = 32/11. Values 0, 4, 4, 8: e = 2.5, S = 6.25 / 2 + 2.25
/// / 4 + 2.25 / 8 + 30.25 / 8 = 7.75, sum p^2 (v - e)^2 = 6.25 / 4 + 2.25 / 16 + 2.25 / 64 + 30.25 / 64 = 2.2109375.
const Keys four = {{0.5, 0.25, 0.125, 0.125}, {0, 4, 4, 8}};

TEST(Estimators, FourKeysByHand) {
  const Observation observation = observe(Estimator::reml, {four.weights, four.values, 1});
  EXPECT_DOUBLE_EQ(observation.n_eff, 32.0 / 11);
  EXPECT_DOUBLE_EQ(observation.estimate[0], 2.5);
  EXPECT_DOUBLE_EQ(observation.residual[0], 7.75);
  EXPECT_DOUBLE_EQ(observation.variance[0], 8.75 / (32.0 / 11 + 1));
  EXPECT_DOUBLE_EQ(observation.precision[0], (32.0 / 11 + 1) / 8.75);
  EXPECT_DOUBLE_EQ(variance(Estimator::reml_naive, four), 7.75 / (21.0 / 11));
  EXPECT_DOUBLE_EQ(variance(Estimator::reml_conjugate, four), (32.0 / 11 * 7.75 + 1) / (32.0 / 11 * (32.0 / 11)));
  EXPECT_DOUBLE_EQ(variance(Estimator::sandwich, four), 2.2109375);
  EXPECT_DOUBLE_EQ(variance(Estimator::kish, four), (32.0 + 1) / 4 * 11 / 32);  // squares about 4: 16 + 0 + 0 + 16
  EXPECT_DOUBLE_EQ(variance(Estimator::delta_weight_free, four, with_noise), 8.75 / (32.0 / 11 + 1) + 0.25 * 2.2109375);
}

TEST(Estimators, DeltaOfTwoKeysByHand) {
  const Numbers weights = {0.75, 0.25}, values = {1, 5};  // e = 2, deviations -1 and 3
  const Numbers u = {1, 2}, w = {3, 0}, precision = {2, 0.5};
  const TokenNoise noise{u, w, precision};
  // |w - u|^2 = |(2, -2)|^2 = 8, |w + 3u|^2 = |(6, 6)|^2 = 72
  const auto observation = observe(Estimator::delta, {weights, values, 1}, {}, &noise);
  EXPECT_DOUBLE_EQ(observation.variance[0], 0.5625 / 2 * 8 + 0.0625 / 0.5 * 72);
}

TEST(Estimators, TheScaleOfTheWeightsDoesNotMatter) {
  const Keys scaled = {{4, 2, 1, 1}, four.values};
  for (const Estimator estimator : all_estimators) {
    if (estimator == Estimator::delta) continue;
    EXPECT_DOUBLE_EQ(variance(estimator, scaled, with_noise), variance(estimator, four, with_noise))
        << name_of(estimator);
  }
}

TEST(Estimators, OnlyAPriorKnowsAScaleOfTheValues) {
  const Keys wider = {four.weights, {0, 40, 40, 80}};
  for (const Estimator estimator : {Estimator::reml_naive, Estimator::sandwich})
    EXPECT_NEAR(variance(estimator, wider), 100 * variance(estimator, four), 1e-9) << name_of(estimator);
  for (const Estimator estimator : {Estimator::reml, Estimator::reml_conjugate, Estimator::kish}) {
    EXPECT_LT(variance(estimator, wider), 99.5 * variance(estimator, four)) << name_of(estimator);
    EXPECT_NEAR(variance(estimator, wider, {.prior_variance = 100}), 100 * variance(estimator, four), 1e-9);
  }
}

TEST(Estimators, OneKeyBoundsThePrecisionOfRemlByTwoD) {
  // The paper, section 3.1: n_eff = 1 gives lambda_obs <= 2 d_k, whatever the values are.
  for (const std::size_t d : {1u, 8u, 64u}) {
    const Numbers values(d, 3.0);
    const auto one = observe(Estimator::reml, {Numbers{1.0}, values, d});
    for (const double precision : one.precision) EXPECT_DOUBLE_EQ(precision, 2.0 * static_cast<double>(d));
  }
  // Nearly one key: a residual can only lower it.
  const auto nearly = observe(Estimator::reml, {Numbers{1 - 1e-9, 1e-9}, Numbers{0, 0, 50, 0}, 2});
  EXPECT_LT(nearly.precision[0], 4);
  EXPECT_NEAR(nearly.precision[1], 4, 1e-8);
}

TEST(Estimators, ThePriorDoesNotFade) {
  // The paper says that it does at high n_eff. With S = sigma0^2 and n_eff = 80 the estimate is 160/81 of S / (n - 1),
  // and 1.96 of the truth sigma^2 / n where S has its expectation (1 - 1/n) sigma^2.
  const double prior = 0.25, n = 80;
  EXPECT_NEAR(reml_variance(n, prior, 1, prior) / (prior / n), 160.0 / 81, 1e-12);
  EXPECT_NEAR(reml_variance(n, prior * (1 - 1 / n), 1, prior) / (prior / n), 1.96, 0.005);
  EXPECT_NEAR(reml_variance(1e6, prior, 1, prior) / (prior / 1e6), 2, 1e-5);
  // The conjugate posterior does fade: its prior joins a sum of squares.
  EXPECT_NEAR(reml_conjugate_variance(n, prior * (1 - 1 / n), 1, prior) / (prior / n), 1, 1e-12);
  EXPECT_NEAR(reml_conjugate_variance(n, 100 * prior * (1 - 1 / n), 1, prior) / (100 * prior / n), 1, 0.013);
}

TEST(Estimators, WithoutAPriorRemlConjugateIsNaive) {
  EXPECT_DOUBLE_EQ(variance(Estimator::reml_conjugate, four, {.prior_strength = 0}),
                   variance(Estimator::reml_naive, four));
}

TEST(Estimators, EqualWeightsMakeKishTheConjugateEstimate) {
  const Keys equal = {{0.25, 0.25, 0.25, 0.25}, {1, 2, 4, 9}};
  EXPECT_DOUBLE_EQ(variance(Estimator::kish, equal), variance(Estimator::reml_conjugate, equal));
  // and the sandwich S / n, without the correction by one degree of freedom
  EXPECT_DOUBLE_EQ(variance(Estimator::sandwich, equal), 0.75 * variance(Estimator::reml_naive, equal));
}

TEST(Estimators, EqualValuesLeaveThePriorAlone) {
  const Keys equal = {{0.5, 0.25, 0.25}, {7, 7, 7}};
  const double n = 1 / (0.25 + 0.125);
  EXPECT_DOUBLE_EQ(variance(Estimator::reml, equal), 1 / (n + 1));
  EXPECT_DOUBLE_EQ(variance(Estimator::reml_conjugate, equal), 1 / (n * n));
  EXPECT_DOUBLE_EQ(variance(Estimator::kish, equal), 1 / (3 * n));
  for (const Estimator estimator : {Estimator::reml_naive, Estimator::sandwich}) {
    const auto observation = observe(estimator, {equal.weights, equal.values, 1});
    EXPECT_EQ(observation.variance[0], 0);
    EXPECT_EQ(observation.precision[0], std::numeric_limits<double>::infinity());
  }
}

TEST(Estimators, OneVisibleKeyIsNotDefinedWithoutAPrior) {
  const Keys one = {{1}, {3}};
  EXPECT_THAT(variance(Estimator::reml_naive, one), IsNan());
  // A second weight below the rounding of n_eff leaves a residual, but no degree of freedom.
  EXPECT_THAT(variance(Estimator::reml_naive, {{1, 1e-17}, {3, 8}}), IsNan());
  const EstimatorOptions no_prior{.prior_strength = 0};
  for (const Estimator estimator : {Estimator::reml_conjugate, Estimator::kish}) {
    EXPECT_EQ(variance(estimator, one), 1) << name_of(estimator);
    const auto observation = observe(estimator, {one.weights, one.values, 1}, no_prior);
    EXPECT_THAT(observation.variance[0], IsNan()) << name_of(estimator);
    EXPECT_THAT(observation.precision[0], IsNan()) << name_of(estimator);
    EXPECT_EQ(observation.undefined, 1u);
  }
  EXPECT_EQ(variance(Estimator::sandwich, one), 0);
}

TEST(Estimators, NoVisibleKeyIsNaNAndCounted) {
  const TokenNoise noise{};
  for (const Estimator estimator : all_estimators) {
    const auto observation = observe(estimator, {Numbers{}, Numbers{}, 2}, with_noise, &noise);
    EXPECT_THAT(observation.n_eff, IsNan());
    EXPECT_THAT(observation.estimate, Each(0.0));
    EXPECT_THAT(observation.variance, Each(IsNan()));
    EXPECT_THAT(observation.precision, Each(IsNan()));
    EXPECT_EQ(observation.undefined, 2u);
  }
}

TEST(Estimators, BoundsCutThePrecisionAndCount) {
  const EstimatorOptions bounds{.least_precision = 1e-3, .most_precision = 100};
  const auto high = observe(Estimator::sandwich, {Numbers{0.5, 0.5}, Numbers{1, 0, 1, 4}, 2}, bounds);
  EXPECT_EQ(high.precision[0], 100);
  EXPECT_EQ(high.variance[0], 0);  // the estimate itself stays
  EXPECT_DOUBLE_EQ(high.precision[1], 1 / 2.0);
  EXPECT_EQ(high.precisions_cut, 1u);
  const auto low = observe(Estimator::sandwich, {Numbers{0.5, 0.5}, Numbers{0, 1e3}, 1}, bounds);
  EXPECT_EQ(low.precision[0], 1e-3);
  EXPECT_EQ(low.precisions_cut, 1u);
}

TEST(Estimators, WeightsOfBothSignsHaveASandwichAlone) {
  const auto signed_weights = observe(Estimator::sandwich, {Numbers{0.8, -0.3}, Numbers{1, 2}, 1});
  // e = (0.8 - 0.6) / 0.5 = 0.4
  EXPECT_DOUBLE_EQ(signed_weights.variance[0], (0.64 * 0.36 + 0.09 * 2.56) / 0.25);
  EXPECT_FALSE(signed_weights.weight_sum_raised);
  const auto cancelling =
      observe(Estimator::sandwich, {Numbers{0.5, -0.5}, Numbers{1, 1}, 1}, {.least_weight_share = 0.1});
  EXPECT_TRUE(cancelling.weight_sum_raised);
  EXPECT_NEAR(cancelling.estimate[0], 0, 1e-15);
  EXPECT_DOUBLE_EQ(cancelling.variance[0], (0.25 + 0.25) / 0.01);
  EXPECT_EQ(refusal_of([] {
              observe(Estimator::reml, {Numbers{0.8, -0.3}, Numbers{1, 2}, 1});
            }),
            "observe: weight -0.3 at key 1; must not be negative for reml");
}

TEST(Estimators, KishIsRightOfWeightsThatDoNotDependOnValues) {
  // The mean of V over values drawn again equals sigma^2 / n: here sigma^2 = 4, n = 32 / 11.
  Engine engine{Random(5)};
  boost::random::normal_distribution<double> normal(0, 2);
  constexpr int draws = 40000;
  double sum = 0, squares = 0;
  for (int draw = 0; draw < draws; ++draw) {
    const Keys keys = {four.weights, {normal(engine), normal(engine), normal(engine), normal(engine)}};
    const double v = variance(Estimator::kish, keys, {.prior_strength = 0});
    sum += v;
    squares += v * v;
  }
  const double mean = sum / draws, error = std::sqrt((squares / draws - mean * mean) / draws);
  EXPECT_NEAR(mean, 4.0 * 11 / 32, 4 * error);
  EXPECT_LT(error, 0.01);
}

TEST(Estimators, DeltaIsTheVarianceUnderSmallNoise) {
  // Tokens h = truth + noise; values w·h, scores u·h. The spread of e over the noise, against the formula at the truth.
  Engine engine{Random(6)};
  boost::random::normal_distribution<double> normal;
  constexpr std::size_t keys = 6, model = 3;
  const Numbers u = {0.7, -0.4, 1.1}, w = {1.0, 0.5, -0.8}, precision = {4e4, 1e5, 2e4, 8e4, 3e4, 5e4};
  std::vector<Numbers> tokens;
  for (std::size_t key = 0; key < keys; ++key) tokens.push_back({normal(engine), normal(engine), normal(engine)});
  const auto weights_and_values = [&](const std::vector<Numbers>& of) {
    Keys made;
    double total = 0;
    for (const Numbers& token : of) {
      double score = 0, value = 0;
      for (std::size_t m = 0; m < model; ++m) {
        score += u[m] * token[m];
        value += w[m] * token[m];
      }
      made.weights.push_back(std::exp(score));
      made.values.push_back(value);
      total += made.weights.back();
    }
    for (double& weight : made.weights) weight /= total;
    return made;
  };
  const Keys truth = weights_and_values(tokens);
  const TokenNoise noise{u, w, precision};
  const auto observation = observe(Estimator::delta, {truth.weights, truth.values, 1}, {}, &noise);
  constexpr int draws = 40000;
  double squares = 0;
  for (int draw = 0; draw < draws; ++draw) {
    std::vector<Numbers> noisy = tokens;
    for (std::size_t key = 0; key < keys; ++key)
      for (double& part : noisy[key]) part += normal(engine) / std::sqrt(precision[key]);
    const Keys seen = weights_and_values(noisy);
    double e = 0;
    for (std::size_t key = 0; key < keys; ++key) e += seen.weights[key] * seen.values[key];
    squares += (e - observation.estimate[0]) * (e - observation.estimate[0]);
  }
  EXPECT_NEAR(squares / draws / observation.variance[0], 1, 4 * std::sqrt(2.0 / draws));
}

TEST(Estimators, NamesAreReadBack) {
  for (const Estimator estimator : all_estimators) EXPECT_EQ(parse_estimator(name_of(estimator), "here"), estimator);
  EXPECT_EQ(refusal_of([] { parse_estimator("remlnaive", "--estimators"); }),
            "--estimators: no estimator 'remlnaive'; must be one of reml, reml_naive, reml_conjugate, sandwich, kish, "
            "delta, delta_weight_free; did you mean 'reml_naive'?");
}

TEST(Estimators, WrongRequestsAreNamed) {
  const Numbers weights = {0.5, 0.5}, values = {1, 2};
  const auto refused = [&](Estimator estimator, const EstimatorOptions& options) {
    return refusal_of([&] { observe(estimator, {weights, values, 1}, options); });
  };
  EXPECT_THAT(refused(Estimator::delta_weight_free, {}), HasSubstr("without the score noise omega; give it"));
  EXPECT_THAT(refused(Estimator::delta, {}), HasSubstr("delta without tokens and projections; give them"));
  EXPECT_THAT(refused(Estimator::reml, {.prior_strength = -1}), HasSubstr("strength nu is -1; must be finite and at"));
  EXPECT_THAT(refused(Estimator::reml, {.prior_variance = NAN}), HasSubstr("variance sigma0^2 is nan; must be finite"));
  EXPECT_THAT(refused(Estimator::reml, {.least_precision = 2, .most_precision = 1}),
              HasSubstr("the largest precision is 1; must be at least the smallest, 2"));
  EXPECT_THAT(refusal_of([&] {
                observe(Estimator::reml, {weights, Numbers{1}, 1});
              }),
              HasSubstr("1 numbers of values for 2 keys of 1 dimensions"));
  EXPECT_THAT(refusal_of([&] {
                observe(Estimator::reml, {weights, Numbers{1, NAN}, 1});
              }),
              HasSubstr("number of the values 1 is nan; must be finite"));
  const Numbers one = {1}, precision = {1, 0};
  const TokenNoise wrong{one, one, precision};
  EXPECT_THAT(refusal_of([&] {
                observe(Estimator::delta, {weights, values, 1}, {}, &wrong);
              }),
              HasSubstr("token precision 0 at key 1; must be above 0"));
}

}  // namespace estimators_test
}  // namespace gainlens::bft
