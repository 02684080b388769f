// S keeps its digits for long texts in the fused CUDA kernel too, whose source runs on the host (cuda_emulation/).
#include "kernels/attention_testing.h"
#include "kernels/emulated_attention.h"
#include "kernels/long_texts.h"

#include <fmt/format.h>

namespace gainlens::kernels {
namespace long_texts_fused_test {

using namespace testing;

constexpr double promise = 4e-6;

TEST(LongTextsOfTheFusedKernel,
     ResidualKeepsItsPromise) {  // runs thread by thread, so the time allows only 8k positions and 16 dimensions
  for (const std::string& name : long_case_names()) {
    for (const std::int64_t length : {1 << 10, 1 << 13}) {
      SCOPED_TRACE(fmt::format("{} T {}", name, length));
      const LongCase hard = long_case(name, length, 16, 8);
      const at::Tensor expected = reference(hard.options, hard.inputs).residual_by_dimension;
      EXPECT_LT(
          error_of_residual(emulated(hard.options, hard.inputs).residual_by_dimension, expected, hard.inputs.value),
          promise);
    }
  }
}

// Sums of bfloat16 inputs, whose weights are rounded. Here weights and values are exact in bfloat16, so that only the
// errors of the sums remain.
TEST(LongTextsOfTheFusedKernel, TensorCoreSumsKeepThePromiseToo) {
  LongCase hard = long_case("step_after_64", 1 << 13, 16, 8);
  hard.inputs = cast(hard.inputs, at::kBFloat16);
  const at::Tensor expected = reference(hard.options, hard.inputs).residual_by_dimension;
  EXPECT_LT(error_of_residual(emulated(hard.options, hard.inputs).residual_by_dimension, expected, hard.inputs.value),
            promise);
}

}  // namespace long_texts_fused_test
}  // namespace gainlens::kernels
