// The fused CUDA kernel against the oracle. Its source runs on the host here, thread by thread (cuda_emulation/): that shows what it
// computes, not that a GPU runs it.

#include "kernels/attention_fused.h"
#include "kernels/attention_cases.h"
#include "kernels/attention_sequences.h"
#include "kernels/attention_testing.h"
#include "kernels/cuda_emulation/emulated_fused.h"
#include "kernels/fused_call.h"

#include "core/error.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <set>

namespace gainlens::kernels {
namespace {

using namespace testing;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

QueryStatistics emulated(const AttentionOptions& options, const Inputs& in) {
  const SequenceKernel kernel = [](const AttentionOptions& own, const AttentionShape& shape, const at::Tensor& query, const at::Tensor& key,
                                   const at::Tensor& value) { return attention_fused(own, shape, query, key, value, launch_emulated); };
  return over_sequences(options, in.query, in.key, in.value, kernel);
}

/// Fields that come from weights alone, which stay float32.
const std::set<std::string> exact_fields{"n_eff",           "entropy",     "without_first_n_eff", "first_mass",
                                         "sink_logit_mass", "column_mean", "value_variance"};

/// Errors within `tolerance` of the field's largest element where values take part, and within `exact` where they do not.
void expect_near(const QueryStatistics& actual, const QueryStatistics& expected, double exact, double tolerance) {
  for (const auto& [name, tensor] : all_tensors()) {
    ASSERT_EQ((actual.*tensor).defined(), (expected.*tensor).defined()) << name;
    if (!(expected.*tensor).defined()) continue;
    const at::Tensor a = (actual.*tensor).to(at::kDouble), b = (expected.*tensor).to(at::kDouble);
    ASSERT_TRUE(at::isnan(a).equal(at::isnan(b))) << name;
    const double error = error_of_largest(at::nan_to_num(a, 0.0), at::nan_to_num(b, 0.0));
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
  expect_close(emulated(options(), in), reference(options(), in), options().window == 1 ? 1e-4 : 1e-5, 2e-6);
}

TEST_P(AttentionFused, Bfloat16IsNearReference) {
  const Inputs in = cast(inputs(), at::kBFloat16);
  expect_near(emulated(options(), in), reference(options(), in), 1e-5, 1e-2);
}

TEST_P(AttentionFused, Float16IsNearReference) {
  const Inputs in = cast(inputs(), at::kHalf);
  expect_near(emulated(options(), in), reference(options(), in), 1e-5, 1e-2);
}

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  const auto& [shape, mask] = info.param;
  return fmt::format("T{}d{}kv{}g{}{}", shape.length, shape.head_dim, shape.kv_heads, shape.group, mask.name);
}

INSTANTIATE_TEST_SUITE_P(Masks, AttentionFused, ::testing::Combine(::testing::Values(Shape{130, 16, 1, 2}), ::testing::ValuesIn(all_masks)),
                         case_name);
INSTANTIATE_TEST_SUITE_P(Lengths, AttentionFused,
                         ::testing::Combine(::testing::Values(Shape{1, 16, 1, 1}, Shape{63, 16, 1, 1}, Shape{64, 16, 1, 1},
                                                              Shape{65, 16, 1, 1}, Shape{257, 16, 1, 2}),
                                            ::testing::Values(all_masks[0], all_masks[1], all_masks[5])),
                         case_name);
INSTANTIATE_TEST_SUITE_P(Widths, AttentionFused,
                         ::testing::Combine(::testing::Values(Shape{130, 40, 1, 1}, Shape{130, 64, 1, 1}, Shape{130, 128, 2, 1},
                                                              Shape{70, 13, 1, 1}, Shape{70, 256, 1, 1}, Shape{70, 136, 1, 1}),
                                            ::testing::Values(all_masks[0], all_masks[1])),
                         case_name);

}  // namespace
}  // namespace gainlens::kernels
