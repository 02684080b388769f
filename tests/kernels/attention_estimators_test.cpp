// The estimators of lambda_obs: the composed backend against the oracle. tests/bft/attention_estimators_test.cpp
// compares the oracle with an independent golden.

#include "kernels/attention_cases.h"
#include "kernels/attention_testing.h"

#include "core/error.h"

#include <gmock/gmock.h>

#include <ostream>

namespace gainlens {

inline void PrintTo(const ChosenEstimator& estimator, std::ostream* out) {
  *out << name_of(estimator.name);
}

namespace kernels {
namespace attention_estimators_test {

using namespace testing;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const std::vector<ChosenEstimator> others{{Estimator::reml_naive},
                                          {Estimator::reml_conjugate},
                                          {Estimator::sandwich},
                                          {Estimator::kish},
                                          {Estimator::delta_weight_free, 0.3}};

class AttentionEstimators : public ::testing::TestWithParam<std::tuple<ChosenEstimator, Mask>> {
 protected:
  const Shape shape{90, 20, 2, 2, 13};
  Inputs inputs() const { return shape.inputs(); }
  AttentionOptions options() const {
    AttentionOptions options = options_of(std::get<1>(GetParam()), shape);
    options.estimator = std::get<0>(GetParam());
    return options;
  }
};

TEST_P(AttentionEstimators, ComposedEqualsTheOracle) {
  expect_close(streamed(options(), inputs()), reference(options(), inputs()), 1e-10, 1e-11);
}

TEST_P(AttentionEstimators, ComposedEqualsTheOracleForFloat32) {
  const Inputs in = cast(inputs(), at::kFloat);
  expect_close(streamed(options(), in), reference(options(), in), 1e-5, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Masks, AttentionEstimators,
                         ::testing::Combine(::testing::ValuesIn(others), ::testing::ValuesIn(all_masks)),
                         [](const auto& info) {
                           return std::string(name_of(std::get<0>(info.param).name)) + "_" +
                                  std::get<1>(info.param).name;
                         });

TEST(AttentionEstimatorsHard, LongTextsWithASinkAndAWindow) {
  Inputs in = random_inputs(1100, 16, 1, 2, 3);
  for (const ChosenEstimator& estimator : others) {
    AttentionOptions options{.key_bias = at::zeros({1100}, at::TensorOptions(at::kDouble)), .estimator = estimator};
    options.key_bias[0] = 12;  // key 0 takes nearly all mass: n_eff - 1 is small
    options.sequences = {{0, 700}, {700, 1100}};
    for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
      const Inputs typed = cast(in, type);
      // The oracle takes n_eff - 1 and v_0 - e as differences: where p_0 is 1 - 1e-8 it keeps 8 digits of them.
      expect_close(streamed(options, typed), reference(options, typed), type == at::kDouble ? 1e-7 : 3e-5, 1e-5);
    }
  }
}

TEST(AttentionEstimatorsHard, TheEstimatorChangesNothingElse) {
  const Inputs in = random_inputs(90, 20, 2, 2);
  AttentionOptions options{.returned = {.per_dimension = true}, .backend = AttentionBackend::composed};
  const QueryStatistics plain = streamed(options, in);
  options.estimator.name = Estimator::sandwich;
  const QueryStatistics other = streamed(options, in);
  for (const auto& [name, tensor] : all_tensors()) {
    if (!(plain.*tensor).defined()) continue;
    const bool estimated = name.find("precision") != std::string::npos || name.find("gain") != std::string::npos;
    const double error = field_error({name, tensor}, other, plain);
    if (estimated) {
      EXPECT_GT(error, 1e-3) << name;
    } else {
      EXPECT_LT(error, 1e-12) << name;
    }
  }
}

TEST(AttentionEstimatorsHard, OneKeyHasNoNaiveVarianceAndNoSandwich) {
  const Inputs in = random_inputs(3, 4, 1, 1);
  const QueryStatistics naive = streamed({.estimator = {Estimator::reml_naive}}, in),
                        sandwich = streamed({.estimator = {Estimator::sandwich}}, in),
                        no_prior = streamed({.prior_strength = 0, .estimator = {Estimator::kish}}, in);
  EXPECT_TRUE(std::isnan(naive.observation_precision[0][0].item<double>()));
  EXPECT_TRUE(std::isnan(naive.kalman_gain[0][0].item<double>()));
  EXPECT_TRUE(std::isnan(sandwich.observation_precision[0][0].item<double>()));
  EXPECT_TRUE(std::isnan(sandwich.log_observation_precision[0][0].item<double>()));
  EXPECT_EQ(sandwich.kalman_gain[0][0].item<double>(), 1);
  EXPECT_TRUE(std::isnan(sandwich.without_first_kalman_gain[0][0].item<double>()));
  EXPECT_TRUE(std::isnan(no_prior.kalman_gain[0][0].item<double>()));
  EXPECT_FALSE(std::isnan(no_prior.kalman_gain[0][1].item<double>()));
  EXPECT_EQ(naive.queries_without_keys, 0);
}

/// Several keys with one value share the mass: the exact V is 0 or far below what the sums resolve.
TEST(AttentionEstimatorsHard, APrecisionThatTheSumsDoNotResolveIsNotGiven) {
  Inputs in = random_inputs(200, 8, 1, 1);
  for (std::int64_t key = 0; key < 200; ++key) in.value[0][key] = key % 3 == 0 ? in.value[0][0] : in.value[0][1];
  for (std::int64_t key = 0; key < 200; key += 3) in.key[0][key] = in.key[0][0];
  for (const double mass : {0.0, 20.0, 60.0}) {  // of the first kind of key, in units of scores
    AttentionOptions options{.key_bias = at::zeros({200}, at::TensorOptions(at::kDouble)),
                             .returned = {.per_dimension = true}};
    for (std::int64_t key = 0; key < 200; key += 3) options.key_bias[key] = mass;
    for (const Estimator estimator : {Estimator::reml_naive, Estimator::sandwich}) {
      if (estimator == Estimator::reml_naive && mass > 30) continue;  // the oracle takes n_eff - 1 as a difference
      options.estimator.name = estimator;
      const QueryStatistics found = streamed(options, in), oracle = reference(options, in);
      const at::Tensor given = at::isfinite(found.observation_precision_by_dimension);
      const at::Tensor a = found.observation_precision_by_dimension.index({given}),
                       b = oracle.observation_precision_by_dimension.index({given});
      EXPECT_TRUE(at::allclose(a, b, 1e-3, 0)) << name_of(estimator) << ", " << mass;
      EXPECT_TRUE(found.observation_precision_by_dimension.nan_to_num().le(1e12).all().item<bool>());
      EXPECT_LT(relative_error(found.kalman_gain.nan_to_num(), oracle.kalman_gain.nan_to_num()), 1e-6);
    }
  }
}

TEST(AttentionEstimatorsErrors, NamesWhatDoesNotGoTogether) {
  const Inputs in = random_inputs(8, 4, 1, 1);
  const auto message = [&](AttentionOptions options, const char* text) {
    EXPECT_THAT([&] { streamed(options, in); }, ThrowsMessage<InvalidArgument>(HasSubstr(text)));
  };
  message({.estimator = {Estimator::delta}}, "delta, which needs the noise of tokens");
  message({.estimator = {Estimator::reml, 0.1}}, "score_noise is 0.1, which is of delta_weight_free alone");
  message({.estimator = {Estimator::delta_weight_free, -1}}, "score_noise is -1");
  message({.estimator = {Estimator::sandwich}, .backend = AttentionBackend::streaming}, "the estimator is sandwich");
}

}  // namespace attention_estimators_test
}  // namespace kernels
}  // namespace gainlens
