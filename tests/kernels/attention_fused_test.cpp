// Compares the fused CUDA kernel with the oracle. Its source runs on the host, thread by thread (cuda_emulation/). This
// tests the numbers that it computes, but not that it runs on a GPU.

#include "kernels/cuda/attention_fused.h"
#include "kernels/attention_cases.h"
#include "kernels/attention_testing.h"
#include "kernels/emulated_attention.h"

#include "core/error.h"

#include <ATen/Context.h>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <set>

namespace gainlens::kernels {
namespace attention_fused_test {

using namespace testing;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// Fields that depend only on the weights, which stay in float32.
const std::set<std::string> exact_fields{"n_eff",           "entropy",      "without_first_n_eff", "first_mass",
                                         "sink_logit_mass", "first_weight", "column_mean",         "value_variance"};

/// Expects errors relative to the field's largest element. They must be within `tolerance` for fields that depend on
/// values, and within `exact` for the others. As in expect_close, an element smaller than 1e-2 of the field's unit is
/// compared with that.
void expect_near(const QueryStatistics& actual, const QueryStatistics& expected, double exact, double tolerance) {
  const double value_scale = expected.value_variance.mean().item<double>();
  for (const auto& [name, tensor] : all_tensors()) {
    ASSERT_EQ((actual.*tensor).defined(), (expected.*tensor).defined()) << name;
    if (!(expected.*tensor).defined()) continue;
    const at::Tensor a = (actual.*tensor).to(at::kDouble), b = (expected.*tensor).to(at::kDouble);
    ASSERT_TRUE(at::isnan(a).equal(at::isnan(b))) << name;
    const double unit = name == "entropy" ? 1 : name.find("residual") != std::string::npos ? value_scale : 0;
    const double largest = at::nan_to_num(b, 0.0).abs().max().item<double>();
    const double error =
        at::nan_to_num(a - b, 0.0).abs().max().item<double>() / std::max({largest, 1e-2 * unit, 1e-20});
    EXPECT_LT(error, exact_fields.count(name) > 0 ? exact : tolerance) << name;
  }
  EXPECT_EQ(actual.queries_without_keys, expected.queries_without_keys);
}

using Case = std::tuple<Shape, Mask>;

class AttentionFused : public ::testing::TestWithParam<Case> {
 protected:
  const Shape& shape() const { return std::get<0>(GetParam()); }
  AttentionOptions options() const { return options_of(std::get<1>(GetParam()), shape()); }
  Inputs inputs() const { return random_inputs(shape().length, shape().head_dim, shape().kv_heads, shape().group); }
};

TEST_P(AttentionFused, Float32EqualsReference) {
  const Inputs in = cast(inputs(), at::kFloat);
  expect_close(emulated(options(), in), reference(options(), in), options().window == 1 ? 6e-5 : 1e-5, 2e-6);
}

TEST_P(AttentionFused, Bfloat16IsNearReference) {
  const Inputs in = cast(inputs(), at::kBFloat16);
  expect_near(emulated(options(), in), reference(options(), in), 1e-5, 6e-3);
}

TEST_P(AttentionFused, Float16IsNearReference) {
  const Inputs in = cast(inputs(), at::kHalf);
  expect_near(emulated(options(), in), reference(options(), in), 1e-5, 6e-3);
}

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  const auto& [shape, mask] = info.param;
  return fmt::format("T{}d{}kv{}g{}{}", shape.length, shape.head_dim, shape.kv_heads, shape.group, mask.name);
}

INSTANTIATE_TEST_SUITE_P(Masks, AttentionFused,
                         ::testing::Combine(::testing::Values(Shape{130, 16, 1, 2}), ::testing::ValuesIn(all_masks)),
                         case_name);
INSTANTIATE_TEST_SUITE_P(Lengths, AttentionFused,
                         ::testing::Combine(::testing::Values(Shape{1, 16, 1, 1}, Shape{63, 16, 1, 1},
                                                              Shape{64, 16, 1, 1}, Shape{65, 16, 1, 1},
                                                              Shape{257, 16, 1, 2}),
                                            ::testing::Values(all_masks[0], all_masks[1], all_masks[5])),
                         case_name);
INSTANTIATE_TEST_SUITE_P(Widths, AttentionFused,
                         ::testing::Combine(::testing::Values(Shape{130, 40, 1, 1}, Shape{130, 64, 1, 1},
                                                              Shape{130, 128, 2, 1}, Shape{70, 13, 1, 1},
                                                              Shape{70, 256, 1, 1}, Shape{70, 136, 1, 1}),
                                            ::testing::Values(all_masks[0], all_masks[1])),
                         case_name);

TEST(AttentionFusedNumbers, HardCasesInFloat32) {
  for (const HardCase& hard : hard_cases(130, 16)) {
    if (hard.name == "sharp" || hard.name == "spread_1e4") continue;  // float32 scores are too inexact there
    SCOPED_TRACE(hard.name);
    const Inputs in = cast(hard.inputs, at::kFloat);
    expect_close(emulated(hard.options, in), reference(hard.options, in), 1e-5, 2e-6);
  }
}

TEST(AttentionFusedNumbers, HardCasesInBfloat16) {
  for (const HardCase& hard : hard_cases(130, 16)) {
    SCOPED_TRACE(hard.name);
    const Inputs in = cast(hard.inputs, at::kBFloat16);
    expect_near(emulated(hard.options, in), reference(hard.options, in), hard.name == "spread_1e4" ? 1e-3 : 1e-4, 6e-3);
  }
}

// If the mass of a query lies on one far value, S is a difference of numbers that are 1e3 times as large. Squares
// rounded to bfloat16 would lose all its digits.
TEST(AttentionFusedNumbers, SmallResidualKeepsItsDigitsInBfloat16) {
  Inputs in = random_inputs(130, 16, 1, 1, 0.1);
  in.value.select(1, 70).fill_(8);
  AttentionOptions options{.causal = false, .key_bias = at::zeros({130}), .returned = {.per_dimension = true}};
  options.key_bias[70] = 12.0;  // key 70 has all but 1e-3 of the mass
  in = cast(in, at::kBFloat16);
  const QueryStatistics s = emulated(options, in), expected = reference(options, in);
  const at::Tensor ratio = s.residual_by_dimension.to(at::kDouble) / expected.residual_by_dimension;
  EXPECT_LT((ratio - 1).abs().max().item<double>(), 2e-2);
}

TEST(AttentionFusedNumbers, ConstantValuesHaveNoResidual) {
  Inputs in = cast(random_inputs(130, 16, 1, 1), at::kBFloat16);
  in.value.fill_(0.1);
  const QueryStatistics s = emulated({}, in);
  EXPECT_LT(s.residual.max().item<double>(), 1e-14);
  EXPECT_EQ(s.value_variance.max().item<double>(), 0);
}

TEST(AttentionFusedFields, OnlyWhatIsAskedFor) {
  const Inputs in = cast(random_inputs(130, 16, 1, 2), at::kFloat);
  const AttentionOptions none{.returned = {.output = false,
                                           .entropy = false,
                                           .log_observation_precision = false,
                                           .kalman_gain_scaled = false,
                                           .without_first = false,
                                           .norms = false,
                                           .first_masses = 0}};
  expect_close(emulated(none, in), reference(none, in), 1e-5, 2e-6);
  const AttentionOptions three{.window = 70, .returned = {.first_masses = 3}};
  expect_close(emulated(three, in), reference(three, in), 1e-5, 2e-6);
}

TEST(AttentionFusedFields, SequencesAndPadding) {
  const Shape shape{220, 16, 1, 2};
  const Inputs in = cast(random_inputs(shape.length, shape.head_dim, shape.kv_heads, shape.group), at::kFloat);
  for (const Mask& mask : {all_masks[0], all_masks[1], all_masks.back()}) {
    AttentionOptions options = options_of(mask, shape);
    options.sequences = {{0, 70}, {72, 73}, {80, 211}};
    expect_close(emulated(options, in), reference(options, in), 1e-5, 2e-6);
  }
}

TEST(AttentionFusedGuarantees, LaterPositionsDoNotReachEarlierBits) {
  const std::set<std::string> not_causal{"kalman_gain_scaled", "value_variance", "column_mean"};
  const Inputs in = cast(random_inputs(200, 24, 1, 2), at::kBFloat16);
  const QueryStatistics before = emulated({}, in);
  for (const std::int64_t changed : {30, 64, 100, 199}) {
    Inputs other{in.query.clone(), in.key.clone(), in.value.clone()};
    for (at::Tensor* tensor : {&other.query, &other.key, &other.value}) tensor->slice(1, changed).mul_(-700).add_(3);
    const QueryStatistics after = emulated({}, other);
    for (const auto& [name, tensor] : all_tensors()) {
      if (not_causal.count(name) > 0 || !(before.*tensor).defined()) continue;
      EXPECT_TRUE(same_bits((before.*tensor).slice(1, 0, changed), (after.*tensor).slice(1, 0, changed)))
          << name << " before " << changed;
    }
    EXPECT_FALSE(same_bits(before.entropy.slice(1, changed), after.entropy.slice(1, changed)));
  }
}

TEST(AttentionFusedGuarantees, WhatTheKernelDoesNotComputeIsRefused) {
  EXPECT_THAT([] { emulated({}, random_inputs(70, 16, 1, 1)); },
              ThrowsMessage<InvalidArgument>(HasSubstr("not Double")));
  const Inputs wide = cast(random_inputs(70, 264, 1, 1), at::kFloat);
  EXPECT_THAT([&] { emulated({}, wide); },
              ThrowsMessage<InvalidArgument>(HasSubstr("head_dim 264; the fused CUDA kernel computes at most 256")));
}

TEST(AttentionFusedGuarantees, ABuildWithoutCudaSaysSo) {
  if (fused_cuda_compiled()) GTEST_SKIP() << "SKIPPED: this build has CUDA";
  const Inputs in = cast(random_inputs(70, 16, 1, 1), at::kFloat);
  EXPECT_THAT([&] { over_sequences({}, in.query, in.key, in.value, attention_fused_cuda); },
              ThrowsMessage<NotCompiled>(HasSubstr("no fused CUDA kernel")));
}

// The same comparison on a GPU. This program does not link libtorch_cuda: preload it.
TEST(AttentionFusedOnGpu, EqualsReference) {
  if (!fused_cuda_compiled() || !at::hasCUDA())
    GTEST_SKIP()
        << "SKIPPED: needs a CUDA build, a GPU of sm_80 or newer and libtorch_cuda (LD_PRELOAD=libtorch_cuda.so)";
  const auto to = [](Inputs in, at::Device device) {
    return Inputs{in.query.to(device), in.key.to(device), in.value.to(device)};
  };
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    for (const std::int64_t head_dim : {64, 128, 256}) {
      const Inputs in = cast(random_inputs(1000, head_dim, 2, 2), type), on_gpu = to(in, at::kCUDA);
      for (const AttentionOptions& options :
           {AttentionOptions{}, AttentionOptions{.causal = false, .window = 300, .soft_cap = 20}}) {
        QueryStatistics s = over_sequences(options, on_gpu.query, on_gpu.key, on_gpu.value, attention_fused_cuda);
        for (const auto& [name, tensor] : all_tensors()) {
          if ((s.*tensor).defined()) s.*tensor = (s.*tensor).cpu();
        }
        expect_near(s, reference(options, in), 1e-4, type == at::kFloat ? 1e-4 : 1e-2);
      }
    }
  }
}

}  // namespace attention_fused_test
}  // namespace gainlens::kernels
