// S keeps its digits for texts of any length, as attention_statistics.h states. Tested for up to 128k positions.

#include "kernels/long_texts.h"
#include "kernels/attention_testing.h"
#include "kernels/gradient/attention_gradient.h"
#include "kernels/vector_targets.h"

#include <fmt/format.h>

namespace gainlens::kernels {
namespace long_texts_test {

using namespace testing;

constexpr double promise = 4e-6;
constexpr double of_double_sums = 2e-7;  // the error that rounded weights cause
constexpr std::int64_t head_dim = 64;

/// Fewer queries for longer texts, because the oracle is slow.
std::int64_t queries_at(std::int64_t length) {
  return std::clamp<std::int64_t>((std::int64_t{1} << 19) / length, 4, 64);
}

/// S by dimension, from each method that this machine can run.
std::vector<std::pair<std::string, at::Tensor>> residuals(const LongCase& hard) {
  const auto by = [&](AttentionBackend backend) {
    AttentionOptions options = hard.options;
    options.backend = backend;
    return streamed(options, hard.inputs).residual_by_dimension;
  };
  const Inputs& in = hard.inputs;
  return {{"streaming", by(AttentionBackend::streaming)},
          {"composed", by(AttentionBackend::composed)},
          {"gradient", attention_with_gradient(hard.options, in.query, in.key, in.value).residual}};
}

class LongTexts : public ::testing::TestWithParam<std::tuple<std::string, std::int64_t>> {
 protected:
  LongCase hard_case(std::int64_t dims = head_dim) const {
    const auto& [name, length] = GetParam();
    return long_case(name, length, dims, queries_at(length));
  }
};

TEST_P(LongTexts, ResidualKeepsItsPromise) {
  const LongCase hard = hard_case();
  const at::Tensor expected = reference(hard.options, hard.inputs).residual_by_dimension;
  for (const auto& [way, residual] : residuals(hard)) {
    EXPECT_LT(error_of_residual(residual, expected, hard.inputs.value), way == "streaming" ? promise : of_double_sums)
        << way;
  }
}

std::string name_of(const ::testing::TestParamInfo<LongTexts::ParamType>& info) {
  return fmt::format("{}T{}", std::get<0>(info.param), std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(All, LongTexts,
                         ::testing::Combine(::testing::ValuesIn(long_case_names()),
                                            ::testing::Values(1 << 10, 1 << 13, 1 << 15, 1 << 17)),
                         name_of);

TEST(LongTextsOfEveryInstructionSet, ResidualKeepsItsPromise) {
  for (const std::string& name : long_case_names()) {
    const LongCase hard = long_case(name, 1 << 13, head_dim, 16);
    const at::Tensor expected = reference(hard.options, hard.inputs).residual_by_dimension;
    for_each_instruction_set([&](const char* target) {
      EXPECT_LT(
          error_of_residual(streamed(hard.options, hard.inputs).residual_by_dimension, expected, hard.inputs.value),
          promise)
          << name << " with " << target;
    });
  }
}

// Another sum over all keys: the variance of the values, by which scaled K divides.
TEST(LongTextsNumbers, ValueVarianceKeepsItsDigits) {
  const LongCase hard = long_case("step_after_64", 1 << 17, head_dim, 1);
  const at::Tensor expected = reference(hard.options, hard.inputs).value_variance;
  for (const AttentionBackend backend : {AttentionBackend::streaming, AttentionBackend::composed}) {
    AttentionOptions options = hard.options;
    options.backend = backend;
    EXPECT_LT(relative_error(streamed(options, hard.inputs).value_variance, expected),
              1e-6);  // 64 of 131,072 values differ
  }
}

}  // namespace long_texts_test
}  // namespace gainlens::kernels
