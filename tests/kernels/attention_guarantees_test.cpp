// Properties of the streaming kernel other than its numbers: bits that depend neither on later positions nor on the
// number of threads, bounds on memory, and refused inputs.

#include "kernels/attention_testing.h"
#include "kernels/counted_memory.h"
#include "kernels/vector_targets.h"

#include "core/error.h"
#include "kernels/query_fields.h"
#include "kernels/streaming/panel_products.h"
#include "kernels/streaming/query_blocks.h"

#include <gmock/gmock.h>

#include <set>

namespace gainlens::kernels {
namespace attention_guarantees_test {

using testing::cast;
using ::testing::HasSubstr;
using testing::Inputs;
using testing::random_inputs;
using testing::same_bits;
using testing::streamed;
using ::testing::ThrowsMessage;

/// Tests the streaming kernel with every instruction set of this machine.
TEST(AttentionGuarantees, EveryInstructionSetOfTheMachineIsRight) {
  const Inputs in = cast(random_inputs(300, 40, 2, 3), at::kFloat), wide = random_inputs(300, 40, 2, 3);
  const AttentionOptions options{.window = 200, .soft_cap = 4, .returned = {.per_dimension = true}};
  const QueryStatistics expected = testing::reference(options, in), expected_wide = testing::reference(options, wide);
  std::set<std::int64_t> widths;
  testing::for_each_instruction_set([&](const char* target) {
    SCOPED_TRACE(target);
    widths.insert(panel_kernels<float>().columns);
    testing::expect_close(streamed(options, in), expected, 1e-5, 1e-6);
    testing::expect_close(streamed(options, wide), expected_wide, 1e-11, 1e-11);
  });
#if HWY_ARCH_X86
  EXPECT_GT(widths.size(), 1u);  // the instruction set did change: vectors of 16 bytes and wider vectors
#endif
}

/// Fields that may depend on later positions.
const std::set<std::string> not_causal{"kalman_gain_scaled", "value_variance", "column_mean"};

const std::vector<AttentionOptions> causal_options{
    {.returned = {.per_dimension = true}},
    {.window = 50, .soft_cap = 3, .returned = {.per_dimension = true}},
};

TEST(AttentionGuarantees, LaterPositionsDoNotReachEarlierBits) {
  for (const AttentionOptions& options : causal_options) {
    for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16}) {
      const Inputs in = cast(random_inputs(300, 24, 1, 2), type);
      const QueryStatistics before = streamed(options, in);
      for (const std::int64_t changed : {1, 30, 62, 63, 64, 150, 256, 299}) {
        Inputs other{in.query.clone(), in.key.clone(), in.value.clone()};
        for (at::Tensor* tensor : {&other.query, &other.key, &other.value})
          tensor->slice(1, changed).mul_(-700).add_(3);
        const QueryStatistics after = streamed(options, other);
        for (const auto& [name, tensor] : testing::all_tensors()) {
          if (not_causal.count(name) > 0 || !(before.*tensor).defined()) continue;
          EXPECT_TRUE(same_bits((before.*tensor).slice(1, 0, changed), (after.*tensor).slice(1, 0, changed)))
              << name << " before position " << changed;
        }
        EXPECT_FALSE(same_bits(before.entropy.slice(1, changed), after.entropy.slice(1, changed)));
      }
    }
  }
}

TEST(AttentionGuarantees, BitsDoNotDependOnThreads) {
  const int threads = at::get_num_threads();
  for (const std::int64_t length : {1, 40, 130, 700}) {
    for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
      const Inputs in = cast(random_inputs(length, 32, 2, 3), type);
      at::set_num_threads(1);
      const QueryStatistics one = streamed({.returned = {.per_dimension = true}}, in);
      for (const int many : {2, 3, 5}) {
        at::set_num_threads(many);
        const QueryStatistics other = streamed({.returned = {.per_dimension = true}}, in);
        for (const auto& [name, tensor] : testing::all_tensors()) {
          if (!(one.*tensor).defined()) continue;
          EXPECT_TRUE(same_bits(one.*tensor, other.*tensor)) << name << " with " << many << " threads";
        }
      }
    }
  }
  at::set_num_threads(threads);
}

TEST(AttentionGuarantees, APlanMayBeReusedForOtherShapes) {
  AttentionPlan plan(AttentionOptions{});
  for (const auto& in :
       {cast(random_inputs(300, 32, 2, 2), at::kFloat), random_inputs(70, 8, 1, 1),
        cast(random_inputs(300, 16, 1, 1), at::kHalf), cast(random_inputs(300, 32, 2, 2), at::kFloat)}) {
    const QueryStatistics reused = attention_statistics(plan, in.query, in.key, in.value), fresh = streamed({}, in);
    EXPECT_TRUE(same_bits(reused.output, fresh.output));
    EXPECT_TRUE(same_bits(reused.kalman_gain, fresh.kalman_gain));
  }
}

TEST(AttentionGuarantees, StridedViewsAreRead) {
  const Inputs in = cast(random_inputs(140, 16, 2, 2), at::kFloat);
  const auto position_first = [](const at::Tensor& t) { return t.transpose(0, 1).contiguous().transpose(0, 1); };
  const auto dimension_first = [](const at::Tensor& t) { return t.transpose(0, 2).contiguous().transpose(0, 2); };
  const QueryStatistics expected = streamed({}, in);
  const Inputs by_position{position_first(in.query), position_first(in.key), position_first(in.value)};
  const Inputs by_dimension{dimension_first(in.query), dimension_first(in.key), dimension_first(in.value)};
  testing::expect_close(streamed({}, by_position), expected, 1e-6, 1e-6);
  testing::expect_close(streamed({}, by_dimension), expected, 1e-6, 1e-6);
}

TEST(AttentionGuarantees, WhatDoesNotFitIsNamedBeforeAnyWork) {
  const Inputs in = cast(random_inputs(20, 8, 1, 2), at::kFloat);
  const auto refused = [&](const AttentionOptions& options, const Inputs& inputs, const char* words) {
    EXPECT_THAT([&] { streamed(options, inputs); }, ThrowsMessage<InvalidArgument>(HasSubstr(words)));
  };
  refused({.window = 0}, in, "window 0; must be at least 1");
  refused({}, {in.query, in.key.to(at::kDouble), in.value}, "key has dtype Double, query Float; must be the same");
  refused({}, {in.query, in.key.to(at::kMeta), in.value}, "key is on meta, query on cpu; must be the same");
  refused({}, {in.query.slice(1, 0, 0), in.key.slice(1, 0, 0), in.value.slice(1, 0, 0)}, "no size may be 0");
  refused({.key_bias = at::full({20}, INFINITY)}, in, "key_bias holds NaN, +inf");
  refused({.soft_cap = 1e-39}, in, "soft_cap 1e-39; must be between 1e-30 and 1e+30, or 0 for none");
  refused({.soft_cap = 1e39}, in, "soft_cap 1e+39");
  refused({.prior_variance = 1e300, .prior_precision = 0}, in, "prior_variance 1e+300; must be between 0 and 1e+30");
  refused({.prior_strength = 1e20, .prior_variance = 1e20}, in, "prior_strength times prior_variance 1e+40");
  refused({.prior_strength = 1e300}, in, "prior_strength 1e+300");
  refused({.prior_precision = NAN}, in, "prior_precision nan");
  refused({.prior_precision_by_dimension = at::full({8}, 1e300, at::kDouble)}, in,
          "prior_precision_by_dimension holds NaN, a negative number or one above 1e+30");
  refused({.sequences = {{0, 10}, {5, 20}}}, in, "sequence [5, 20) after position 10 of 20");
  const auto vast = [](const at::Tensor& t) { return t.slice(1, 0, 1).expand({-1, std::int64_t{1} << 56, -1}); };
  refused({}, {vast(in.query), vast(in.key), vast(in.value)}, "is too large");
}

TEST(AttentionGuarantees, NonFiniteInputsAreAFailedRun) {
  const Inputs in = cast(random_inputs(80, 8, 1, 1), at::kFloat);
  const auto with = [&](at::Tensor Inputs::*tensor, double value) {
    Inputs damaged = in;
    damaged.*tensor = (in.*tensor).clone();
    (damaged.*tensor)[0][70][3] = value;
    return [damaged] { streamed({}, damaged); };
  };
  EXPECT_THAT(with(&Inputs::query, NAN), ThrowsMessage<RunFailed>(HasSubstr("query holds NaN")));
  EXPECT_THAT(with(&Inputs::key, -INFINITY), ThrowsMessage<RunFailed>(HasSubstr("key holds NaN")));
  EXPECT_THAT(with(&Inputs::value, INFINITY), ThrowsMessage<RunFailed>(HasSubstr("value holds NaN")));
  EXPECT_THAT(with(&Inputs::value, 1e19), ThrowsMessage<RunFailed>(HasSubstr("squares may overflow float32")));
  Inputs shifted = in;  // the values have no spread, but the norm of the estimate overflows
  shifted.value = at::full_like(in.value, 1e19);
  EXPECT_THAT([&] { streamed({}, shifted); }, ThrowsMessage<RunFailed>(HasSubstr("squares may overflow float32")));
  EXPECT_THAT(with(&Inputs::key, 1e37), ThrowsMessage<RunFailed>(HasSubstr("may overflow float32")));
}

std::int64_t peak_bytes(std::int64_t length) {
  const Inputs in = cast(random_inputs(length, 16, 1, 4), at::kFloat);
  return testing::peak_bytes_of([&] { streamed({}, in); });
}

TEST(AttentionGuarantees, MemoryGrowsLinearly) {
  const std::int64_t short_text = peak_bytes(1024), long_text = peak_bytes(4096);
  EXPECT_GT(short_text, 0);
  EXPECT_LT(long_text, 4 * short_text);
  // Floats per position: 4 heads x (output + first masses + scalars), plus packed keys, packed values and their squares
  // in whole panels of this machine, plus a little for their lists. One score matrix would need 4096.
  const auto scalars = static_cast<std::int64_t>(query_fields.size());
  const std::int64_t floats = 4 * (16 + first_keys + scalars) + 16 + 2 * panel_kernels<float>().padded(16);
  EXPECT_LT(long_text - short_text, (4096 - 1024) * 4 * (floats + 6));
}

TEST(QueryBlocks, CoverEveryQueryOnceHeaviestFirst) {
  const AttentionShape shape{.heads = 6,
                             .kv_heads = 2,
                             .group = 3,
                             .length = 500,
                             .key_dim = 8,
                             .value_dim = 8,
                             .scale = 1,
                             .prior_variance = 1};
  const std::vector<QueryBlock> blocks = query_blocks({}, shape);
  std::vector<int> seen(1000);
  for (const QueryBlock& block : blocks) {
    EXPECT_EQ(block.two_pass, block.begin < centre_keys);
    EXPECT_TRUE(!block.two_pass || block.end <= centre_keys);  // must not use keys after those that set the centre
    for (std::int64_t query = block.begin; query < block.end; ++query)
      ++seen[static_cast<std::size_t>(block.kv_head * 500 + query)];
  }
  EXPECT_THAT(seen, ::testing::Each(1));
  EXPECT_EQ(blocks.front().end, 500);
}

}  // namespace attention_guarantees_test
}  // namespace gainlens::kernels
