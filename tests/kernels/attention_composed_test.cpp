// The composed path against the oracle, on the CPU: the same calls run on a GPU.

#include "kernels/attention_composed.h"
#include "kernels/attention_cases.h"
#include "kernels/attention_sequences.h"
#include "kernels/attention_testing.h"
#include "kernels/counted_memory.h"

#include <ATen/Context.h>
#include <fmt/format.h>

#include <set>

namespace gainlens::kernels {
namespace {

using namespace testing;

QueryStatistics composed(const AttentionOptions& options, const Inputs& in) {
  return over_sequences(options, in.query, in.key, in.value, attention_composed);
}

using Case = std::tuple<Shape, Mask>;

class AttentionComposed : public ::testing::TestWithParam<Case> {
 protected:
  const Shape& shape() const { return std::get<0>(GetParam()); }
  AttentionOptions options() const { return options_of(std::get<1>(GetParam()), shape()); }
  Inputs inputs() const { return random_inputs(shape().length, shape().head_dim, shape().kv_heads, shape().group); }
  /// Where a query sees one key, S = 0 is a difference of equal numbers: float32 leaves 1e-7 of them.
  double float32_tolerance() const { return options().window == 1 ? 1e-4 : 1e-5; }
};

TEST_P(AttentionComposed, Float64EqualsReference) {
  expect_close(composed(options(), inputs()), reference(options(), inputs()), 1e-11, 1e-11);
}

TEST_P(AttentionComposed, Float32EqualsReference) {
  const Inputs in = cast(inputs(), at::kFloat);
  expect_close(composed(options(), in), reference(options(), in), float32_tolerance(), 1e-6);
}

TEST_P(AttentionComposed, HalfPrecisionInputsAreComputedInFloat32) {
  for (const at::ScalarType type : {at::kHalf, at::kBFloat16}) {
    const Inputs in = cast(inputs(), type);
    const QueryStatistics s = composed(options(), in);
    EXPECT_EQ(s.output.scalar_type(), type);
    expect_close(s, reference(options(), in), float32_tolerance(), type == at::kHalf ? 1e-3 : 8e-3);  // the output is rounded
  }
}

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  const auto& [shape, mask] = info.param;
  return fmt::format("T{}d{}kv{}g{}{}", shape.length, shape.head_dim, shape.kv_heads, shape.group, mask.name);
}

INSTANTIATE_TEST_SUITE_P(Masks, AttentionComposed,
                         ::testing::Combine(::testing::Values(Shape{127, 16, 2, 2}), ::testing::ValuesIn(all_masks)), case_name);
INSTANTIATE_TEST_SUITE_P(Lengths, AttentionComposed,
                         ::testing::Combine(::testing::Values(Shape{1, 8, 1, 1}, Shape{2, 8, 1, 2}, Shape{63, 8, 1, 1}, Shape{64, 8, 1, 1},
                                                              Shape{65, 8, 1, 1}, Shape{257, 8, 1, 2}, Shape{513, 8, 1, 1}),
                                            ::testing::Values(all_masks[0], all_masks[1], all_masks[5], all_masks.back())),
                         case_name);
INSTANTIATE_TEST_SUITE_P(Widths, AttentionComposed,
                         ::testing::Combine(::testing::Values(Shape{130, 64, 1, 1}, Shape{130, 80, 1, 4}, Shape{130, 128, 2, 1},
                                                              Shape{70, 13, 1, 1}, Shape{70, 1, 1, 1}, Shape{90, 8, 1, 40}),
                                            ::testing::Values(all_masks[0])),
                         case_name);

// What one float32 rounding of the scores does at such spreads is no error of the kernel: these are float64.
TEST(AttentionComposedNumbers, HardCasesInFloat64) {
  for (const HardCase& hard : hard_cases(300, 16)) {
    SCOPED_TRACE(hard.name);
    expect_close(composed(hard.options, hard.inputs), reference(hard.options, hard.inputs), 1e-9, 1e-9);
  }
}

TEST(AttentionComposedNumbers, HardCasesInFloat32) {
  for (const HardCase& hard : hard_cases(300, 16)) {
    if (hard.name == "sharp" || hard.name == "spread_1e4") continue;
    SCOPED_TRACE(hard.name);
    const Inputs in = cast(hard.inputs, at::kFloat);
    expect_close(composed(hard.options, in), reference(hard.options, in), hard.name.starts_with("huge") ? 1e-4 : 1e-5, 1e-6);
  }
}

TEST(AttentionComposedNumbers, ConstantValuesHaveNoVariance) {
  Inputs in = cast(random_inputs(200, 16, 1, 1), at::kFloat);
  in.value.fill_(0.1);
  const QueryStatistics s = composed({}, in);
  EXPECT_LT(s.residual.max().item<double>(), 1e-14);
  EXPECT_EQ(s.value_variance.max().item<double>(), 0);
  EXPECT_LT(relative_error(s.kalman_gain_scaled, (s.n_eff + 1) / (s.n_eff + 2)), 1e-6);  // S / sv^2 counts as 0
}

TEST(AttentionComposedNumbers, PriorsAreUsed) {
  const Inputs in = random_inputs(100, 16, 1, 1);
  const AttentionOptions options{.prior_strength = 2.5, .prior_variance = 0.3, .prior_precision = 7};
  expect_close(composed(options, in), reference(options, in), 1e-11, 1e-11);
  const QueryStatistics s = composed({.prior_strength = 0, .prior_precision = 2}, in);  // query 0: S = 0, lambda_obs infinite, K = 1
  EXPECT_TRUE(std::isinf(s.observation_precision[0][0].item<double>()));
  EXPECT_EQ(s.kalman_gain[0][0].item<double>(), 1);
}

TEST(AttentionComposedFields, OnlyWhatIsAskedFor) {
  const Inputs in = random_inputs(100, 16, 1, 2);
  const AttentionOptions none{.returned = {.output = false,
                                           .entropy = false,
                                           .log_observation_precision = false,
                                           .kalman_gain_scaled = false,
                                           .without_first = false,
                                           .norms = false,
                                           .first_masses = 0}};
  expect_close(composed(none, in), reference(none, in), 1e-11, 1e-11);
  const AttentionOptions three{.window = 30, .returned = {.first_masses = 3}};
  expect_close(composed(three, in), reference(three, in), 1e-11, 1e-11);
}

TEST(AttentionComposedFields, SequencesAndPadding) {
  const Shape shape{200, 16, 1, 2};
  const Inputs in = random_inputs(shape.length, shape.head_dim, shape.kv_heads, shape.group);
  for (const Mask& mask : {all_masks[0], all_masks[1], all_masks.back()}) {
    AttentionOptions options = options_of(mask, shape);
    options.sequences = {{0, 70}, {72, 73}, {80, 190}};
    expect_close(composed(options, in), reference(options, in), 1e-11, 1e-11);
  }
}

TEST(AttentionComposedGuarantees, LaterPositionsDoNotReachEarlierBits) {
  const std::set<std::string> not_causal{"kalman_gain_scaled", "value_variance", "column_mean"};
  const Inputs in = cast(random_inputs(300, 24, 1, 2), at::kFloat);
  for (const AttentionOptions& options :
       {AttentionOptions{.returned = {.per_dimension = true}}, AttentionOptions{.window = 50, .soft_cap = 3}}) {
    const QueryStatistics before = composed(options, in);
    for (const std::int64_t changed : {1, 30, 62, 63, 64, 150, 256, 299}) {
      Inputs other{in.query.clone(), in.key.clone(), in.value.clone()};
      for (at::Tensor* tensor : {&other.query, &other.key, &other.value}) tensor->slice(1, changed).mul_(-700).add_(3);
      const Inputs shorter{in.query.slice(1, 0, changed), in.key.slice(1, 0, changed), in.value.slice(1, 0, changed)};
      const QueryStatistics after = composed(options, other), alone = composed(options, shorter);
      for (const auto& [name, tensor] : all_tensors()) {
        if (not_causal.count(name) > 0 || !(before.*tensor).defined()) continue;
        const at::Tensor kept = (before.*tensor).slice(1, 0, changed);
        EXPECT_TRUE(same_bits(kept, (after.*tensor).slice(1, 0, changed))) << name << " before position " << changed;
        EXPECT_TRUE(same_bits(kept, alone.*tensor)) << name << " of a text that ends at " << changed;
      }
      EXPECT_FALSE(same_bits(before.entropy.slice(1, changed), after.entropy.slice(1, changed)));
    }
  }
}

std::int64_t peak_bytes(std::int64_t length) {
  const Inputs in = cast(random_inputs(length, 16, 1, 4), at::kFloat);
  return peak_bytes_of([&] { composed({}, in); });
}

TEST(AttentionComposedGuarantees, MemoryGrowsLinearly) {
  const std::int64_t short_text = peak_bytes(1024), long_text = peak_bytes(4096);
  EXPECT_GT(short_text, 0);
  EXPECT_LT(long_text, 4.2 * short_text);  // of four times the length; quadratic would be 16
}

// The same comparison where a GPU computes. This program does not link libtorch_cuda: preload it.
TEST(AttentionComposedOnGpu, EqualsReference) {
  if (!at::hasCUDA()) GTEST_SKIP() << "SKIPPED: needs a GPU and libtorch_cuda (LD_PRELOAD=libtorch_cuda.so)";
  for (const auto& [type, tolerance] : {std::pair{at::kDouble, 1e-11}, std::pair{at::kFloat, 1e-5}}) {
    const Inputs in = cast(random_inputs(700, 64, 2, 2), type);
    const Inputs on_gpu{in.query.to(at::kCUDA), in.key.to(at::kCUDA), in.value.to(at::kCUDA)};
    for (const AttentionOptions& options : {AttentionOptions{}, AttentionOptions{.causal = false, .window = 300, .soft_cap = 20}}) {
      QueryStatistics s = composed(options, on_gpu);
      for (const auto& [name, tensor] : all_tensors()) {
        if ((s.*tensor).defined()) s.*tensor = (s.*tensor).cpu();
      }
      expect_close(s, reference(options, in), tolerance, tolerance);
    }
  }
}

}  // namespace
}  // namespace gainlens::kernels
