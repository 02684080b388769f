// Compares every backend that runs on this machine with the oracle, over backends, dtypes, shapes and masks.

#include "kernels/attention_cases.h"
#include "kernels/attention_testing.h"
#include "kernels/linear/tile_kernels.h"
#include "kernels/streaming/row_kernels.h"

#include "core/error.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <ostream>

namespace gainlens::kernels {

inline void PrintTo(AttentionBackend backend, std::ostream* out) {
  *out << (backend == AttentionBackend::streaming ? "streaming" : "composed");
}

namespace attention_statistics_test {

using namespace testing;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr auto backends = {AttentionBackend::streaming, AttentionBackend::composed};

std::string name_of(AttentionBackend backend) {
  return backend == AttentionBackend::streaming ? "streaming" : "composed";
}

QueryStatistics computed(AttentionBackend backend, AttentionOptions options, const Inputs& in) {
  options.backend = backend;
  return streamed(options, in);
}

using Case = std::tuple<AttentionBackend, Shape, Mask>;

class AttentionStatistics : public ::testing::TestWithParam<Case> {
 protected:
  const Shape& shape() const { return std::get<1>(GetParam()); }
  AttentionOptions options() const { return options_of(std::get<2>(GetParam()), shape()); }
  Inputs inputs() const { return shape().inputs(); }
  QueryStatistics run(const Inputs& in) const { return computed(std::get<0>(GetParam()), options(), in); }
  /// If a query sees only one key, S = 0 is computed as the difference of two equal numbers, (v - c)^2 with one
  /// rounding each. An error of 6e-8 (v - c)^2 remains. It is compared with 1e-2 of the values' variance. A query of
  /// few keys comes near that if one of them has nearly all the weight.
  double float32_tolerance() const { return options().window.value_or(1000) <= 7 ? 6e-5 : 1e-5; }
};

TEST_P(AttentionStatistics, Float64EqualsReference) {
  expect_close(run(inputs()), reference(options(), inputs()), 1e-11, 1e-11);
}

TEST_P(AttentionStatistics, Float32EqualsReference) {
  const Inputs in = cast(inputs(), at::kFloat);
  expect_close(run(in), reference(options(), in), float32_tolerance(), 1e-6);
}

TEST_P(AttentionStatistics, HalfPrecisionInputsAreComputedInFloat32) {
  for (const at::ScalarType type : {at::kHalf, at::kBFloat16}) {
    const Inputs in = cast(inputs(), type);
    const QueryStatistics s = run(in);
    EXPECT_EQ(s.output.scalar_type(), type);
    expect_close(s, reference(options(), in), float32_tolerance(),
                 type == at::kHalf ? 1e-3 : 8e-3);  // the output is rounded
  }
}

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  const auto& [backend, shape, mask] = info.param;
  const std::string values = shape.other_value_dim == 0 ? "" : fmt::format("v{}", shape.other_value_dim);
  return fmt::format("{}T{}d{}{}kv{}g{}{}", name_of(backend), shape.length, shape.head_dim, values, shape.kv_heads,
                     shape.group, mask.name);
}

INSTANTIATE_TEST_SUITE_P(Masks, AttentionStatistics,
                         ::testing::Combine(::testing::ValuesIn(backends), ::testing::Values(Shape{127, 16, 2, 2}),
                                            ::testing::ValuesIn(all_masks)),
                         case_name);
INSTANTIATE_TEST_SUITE_P(
    Lengths, AttentionStatistics,
    ::testing::Combine(::testing::ValuesIn(backends),
                       ::testing::Values(Shape{1, 8, 1, 1}, Shape{2, 8, 1, 2}, Shape{63, 8, 1, 1}, Shape{64, 8, 1, 1},
                                         Shape{65, 8, 1, 1}, Shape{257, 8, 1, 2}, Shape{513, 8, 1, 1}),
                       ::testing::Values(all_masks[0], all_masks[1], all_masks[5], all_masks.back())),
    case_name);
INSTANTIATE_TEST_SUITE_P(Widths, AttentionStatistics,
                         ::testing::Combine(::testing::ValuesIn(backends),
                                            ::testing::Values(Shape{130, 64, 1, 1}, Shape{130, 80, 1, 4},
                                                              Shape{130, 128, 2, 1}, Shape{130, 256, 1, 2},
                                                              Shape{70, 13, 1, 1}, Shape{70, 1, 1, 1},
                                                              Shape{90, 8, 1, 40}),
                                            ::testing::Values(all_masks[0])),
                         case_name);

// Keys and values of two widths, as in latent attention.
INSTANTIATE_TEST_SUITE_P(ValueWidths, AttentionStatistics,
                         ::testing::Combine(::testing::ValuesIn(backends),
                                            ::testing::Values(Shape{127, 24, 2, 2, 16}, Shape{127, 8, 1, 2, 21}),
                                            ::testing::ValuesIn(all_masks)),
                         case_name);
INSTANTIATE_TEST_SUITE_P(PublishedValueWidths, AttentionStatistics,
                         ::testing::Combine(::testing::ValuesIn(backends),
                                            ::testing::Values(Shape{130, 192, 1, 1, 128}),
                                            ::testing::Values(all_masks[0])),
                         case_name);

class AttentionBackends : public ::testing::TestWithParam<AttentionBackend> {
 protected:
  QueryStatistics run(const AttentionOptions& options, const Inputs& in) const {
    return computed(GetParam(), options, in);
  }
};

std::string backend_name(const ::testing::TestParamInfo<AttentionBackend>& info) {
  return name_of(info.param);
}

INSTANTIATE_TEST_SUITE_P(All, AttentionBackends, ::testing::ValuesIn(backends), backend_name);

// In float64: at wide spreads even one float32 rounding of a score has a large effect, which is not an error of the
// kernel.
TEST_P(AttentionBackends, HardCasesInFloat64) {
  for (const HardCase& hard : hard_cases(300, 16)) {
    SCOPED_TRACE(hard.name);
    expect_close(run(hard.options, hard.inputs), reference(hard.options, hard.inputs), 1e-9, 1e-9);
  }
}

TEST_P(AttentionBackends, HardCasesInFloat32) {
  for (const HardCase& hard : hard_cases(300, 16)) {
    if (hard.name == "sharp" || hard.name == "spread_1e4") continue;
    SCOPED_TRACE(hard.name);
    const Inputs in = cast(hard.inputs, at::kFloat);
    expect_close(run(hard.options, in), reference(hard.options, in), 1e-5, 1e-6);
  }
}

TEST_P(AttentionBackends, ConstantValuesHaveNoResidual) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    Inputs in = cast(random_inputs(200, 16, 1, 1), type);
    in.value.fill_(0.1);
    for (const bool causal : {true, false}) {
      const QueryStatistics s = run({.causal = causal}, in);
      EXPECT_LT(s.residual.max().item<double>(), 1e-14);
      EXPECT_EQ(s.value_variance.max().item<double>(), 0);
      // S / sv^2 counts as 0: K = (n + nu) / (n + nu + nu).
      EXPECT_LT(relative_error(s.kalman_gain_scaled, (s.n_eff + 1) / (s.n_eff + 2)), 1e-6);
      EXPECT_LT(relative_error(s.output, in.value), 1e-6);
    }
  }
}

TEST_P(AttentionBackends, PriorsAreUsed) {
  const Inputs in = random_inputs(100, 16, 1, 1);
  const AttentionOptions options{.prior_strength = 2.5, .prior_variance = 0.3, .prior_precision = 7};
  expect_close(run(options, in), reference(options, in), 1e-11, 1e-11);
  const AttentionOptions none{.prior_strength = 0, .prior_precision = 2};  // query 0: S = 0, lambda_obs infinite, K = 1
  const QueryStatistics s = run(none, in);
  EXPECT_TRUE(std::isinf(s.observation_precision[0][0].item<double>()));
  EXPECT_TRUE(std::isinf(s.log_observation_precision[0][0].item<double>()));
  EXPECT_EQ(s.kalman_gain[0][0].item<double>(), 1);
  EXPECT_LT(relative_error(s.kalman_gain, reference(none, in).kalman_gain), 1e-11);
}

TEST_P(AttentionBackends, OnlyWhatIsAskedFor) {
  const Inputs in = random_inputs(100, 16, 1, 2);
  const AttentionOptions none{.returned = {.output = false,
                                           .entropy = false,
                                           .log_observation_precision = false,
                                           .kalman_gain_scaled = false,
                                           .without_first = false,
                                           .norms = false,
                                           .first_masses = 0}};
  expect_close(run(none, in), reference(none, in), 1e-11, 1e-11);
  for (const std::int64_t masses : {1, 3}) {
    const AttentionOptions few{.window = 30, .returned = {.first_masses = masses}};
    expect_close(run(few, in), reference(few, in), 1e-11, 1e-11);
  }
}

TEST_P(AttentionBackends, SequencesAndPadding) {
  const Shape shape{200, 16, 1, 2, 10};
  const Inputs in = shape.inputs();
  for (const Mask& mask : {all_masks[0], all_masks[1], all_masks.back()}) {
    AttentionOptions options = options_of(mask, shape);
    options.sequences = {{0, 70}, {72, 73}, {80, 190}};
    const QueryStatistics packed = run(options, in);
    expect_close(packed, reference(options, in), 1e-11, 1e-11);
    EXPECT_EQ(packed.output.slice(1, 190).abs().max().item<double>(), 0);  // padding
    EXPECT_TRUE(at::isnan(packed.n_eff.slice(1, 70, 72)).all().item<bool>());
  }
  const QueryStatistics alone =
      run({}, {in.query.slice(1, 80, 190), in.key.slice(1, 80, 190), in.value.slice(1, 80, 190)});
  const QueryStatistics packed = run({.sequences = {{0, 70}, {80, 190}}}, in);
  EXPECT_TRUE(same_bits(packed.kalman_gain_scaled.slice(1, 80, 190), alone.kalman_gain_scaled));
}

TEST_P(AttentionBackends, DamagedActivationsAreAFailedRun) {
  const Inputs in = cast(random_inputs(80, 8, 1, 1), at::kFloat);
  for (const double value : {static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    Inputs damaged{in.query.clone(), in.key, in.value};
    damaged.query[0][70][7] = value;
    EXPECT_THAT([&] { run({}, damaged); }, ThrowsMessage<RunFailed>(HasSubstr("query holds NaN")));
  }
}

TEST(AttentionStatisticsBackends, ABackendThatDoesNotFitTheDeviceIsRefused) {
  const Inputs in = cast(random_inputs(20, 8, 1, 1), at::kFloat);
  EXPECT_THAT([&] { computed(AttentionBackend::fused_cuda, {}, in); },
              ThrowsMessage<InvalidArgument>(HasSubstr("needs inputs on a CUDA device")));
}

// ---- numbers that are hard for the streaming kernel ----

/// Units in the last place between exp(difference) and the weight that a row of scores gets.
double exp_error(float difference) {
  alignas(64) float scores[16] = {0, difference};
  SoftmaxSums sums;
  double none = 0;
  row_kernels<float>().absorb_scores(sums, scores, 0, 2, 0, 2, &none, 0);
  const double exact = std::exp(static_cast<double>(difference));
  return std::abs(static_cast<double>(scores[1]) - exact) / std::exp2(std::floor(std::log2(exact)) - 23);
}

TEST(AttentionStatisticsNumbers, ExponentialKeepsItsPromise) {
  // Vectors of 128 bits: perhaps without fused multiply-add. The error is large only where the result is tiny.
  const double most = tile_kernels().columns / 2 * 32 < 256 ? 64 : 2.5;
  for (float difference = -1e-6f; difference > -87; difference *= 1.0009f) {
    ASSERT_LT(exp_error(difference), most) << difference;
  }
  EXPECT_EQ(exp_error(0), 0);
  alignas(64) float scores[16] = {0, -88, -1e30f, -std::numeric_limits<float>::infinity()};
  SoftmaxSums sums;
  double none = 0;
  row_kernels<float>().absorb_scores(sums, scores, 0, 4, 0, 4, &none, 0);
  EXPECT_EQ(scores[1] + scores[2] + scores[3], 0);
  EXPECT_EQ(sums.total, 1);
  EXPECT_EQ(sums.weighted_score, 0);
}

TEST(AttentionStatisticsNumbers, EqualScoresWeighKeysEqually) {
  Inputs in = cast(random_inputs(300, 16, 1, 1), at::kFloat);
  in.query.zero_();
  const QueryStatistics s = streamed({}, in);
  const at::Tensor visible = at::arange(1, 301).to(at::kFloat);
  EXPECT_LT(relative_error(s.n_eff[0], visible), 1e-6);
  EXPECT_LT(relative_error(s.entropy[0], visible.log()), 1e-6);
  expect_close(s, reference({}, in), 1e-5, 1e-5);
}

TEST(AttentionStatisticsNumbers, OneKeyWithAllTheMass) {
  const Inputs in = cast(random_inputs(200, 16, 1, 1), at::kFloat);
  for (const std::int64_t key : {0, 1, 70, 150}) {
    AttentionOptions options{.key_bias = at::zeros({200})};
    options.key_bias[key] = 120.0;
    expect_close(streamed(options, in), reference(options, in), 1e-5, 1e-6);
  }
}

TEST(AttentionStatisticsNumbers, SinkWithTinyRest) {
  // All but 1e-13 of the mass lies on key 0. float32 cannot resolve 1 - p_0 so finely, but the rest must keep its
  // digits.
  const Inputs in = cast(random_inputs(200, 16, 1, 1), at::kFloat);
  AttentionOptions options{.key_bias = at::zeros({200})};
  options.key_bias[0] = 35.0;
  const QueryStatistics s = streamed(options, in), expected = reference(options, in);
  expect_close(s, expected, 1e-5, 1e-5);
  const at::Tensor ratio = s.residual.slice(1, 1) / expected.residual.slice(1, 1).to(at::kFloat);
  EXPECT_LT((ratio - 1).abs().max().item<double>(), 1e-5);  // S, about 1e-13, has full relative precision
}

// Compares the closed forms of the method with the oracle, which removes key 0 by brute force.
TEST(AttentionStatisticsNumbers, WithoutFirstFollowsItsFormulas) {
  const Inputs in = random_inputs(150, 16, 1, 1);
  const QueryStatistics s = reference({.returned = {.per_dimension = true}}, in);
  const at::Tensor p0 = s.first_mass[0].select(1, 0).slice(0, 1), n = s.n_eff[0].slice(0, 1);
  const at::Tensor others = 1 - p0;
  EXPECT_LT(relative_error(others * others / (1 / n - p0 * p0), s.without_first_n_eff[0].slice(0, 1)), 1e-9);
  const at::Tensor e = s.output[0].slice(0, 1), v0 = in.value[0][0], mass = p0.unsqueeze(1);
  const at::Tensor mean = (e - mass * v0) / (1 - mass);
  const at::Tensor residual =
      (s.residual_by_dimension[0].slice(0, 1) + e * e - mass * v0 * v0) / (1 - mass) - mean * mean;
  EXPECT_LT(relative_error(residual.mean(1), s.without_first_residual[0].slice(0, 1)), 1e-9);
}

}  // namespace attention_statistics_test
}  // namespace gainlens::kernels
