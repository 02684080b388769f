// Properties of the composed path other than its numbers, which attention_statistics_test.cpp tests. The tests run on
// the CPU; the same library calls run on a GPU.

#include "kernels/composed/attention_composed.h"
#include "kernels/attention_sequences.h"
#include "kernels/attention_testing.h"
#include "kernels/counted_memory.h"

#include <ATen/Context.h>

#include <set>

namespace gainlens::kernels {
namespace attention_composed_test {

using namespace testing;

QueryStatistics composed(const AttentionOptions& options, const Inputs& in) {
  return over_sequences(options, in.query, in.key, in.value, attention_composed);
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
  EXPECT_LT(long_text, 4.2 * short_text);  // for four times the length; quadratic memory would give 16
}

// The same comparison on a GPU. This program does not link libtorch_cuda: preload it.
TEST(AttentionComposedOnGpu, EqualsReference) {
  if (!at::hasCUDA()) GTEST_SKIP() << "SKIPPED: needs a GPU and libtorch_cuda (LD_PRELOAD=libtorch_cuda.so)";
  for (const auto& [type, tolerance] : {std::pair{at::kDouble, 1e-11}, std::pair{at::kFloat, 1e-5}}) {
    const Inputs in = cast(random_inputs(700, 64, 2, 2), type);
    const Inputs on_gpu{in.query.to(at::kCUDA), in.key.to(at::kCUDA), in.value.to(at::kCUDA)};
    for (const AttentionOptions& options :
         {AttentionOptions{}, AttentionOptions{.causal = false, .window = 300, .soft_cap = 20}}) {
      QueryStatistics s = composed(options, on_gpu);
      for (const auto& [name, tensor] : all_tensors()) {
        if ((s.*tensor).defined()) s.*tensor = (s.*tensor).cpu();
      }
      expect_close(s, reference(options, in), tolerance, tolerance);
    }
  }
}

}  // namespace attention_composed_test
}  // namespace gainlens::kernels
