#pragma once

#include "kernels/attention_agreement.h"
#include "kernels/instruction_limit.h"

#include <gtest/gtest.h>

namespace gainlens::kernels::testing {

/// The factor on tolerances: 2 where there is no fused multiply-add, so that each product is rounded before it is
/// added.
inline double machine_factor() {
#if defined(__x86_64__)
  if (instruction_limit() == InstructionLimit::sse4 || !__builtin_cpu_supports("fma")) return 2;
#endif
  return 1;
}

/// Expects that every tensor agrees within `tolerance`, `output` within `output_tolerance` (both times machine_factor),
/// and that the counts are equal. The error of a tensor is field_error.
inline void expect_close(const QueryStatistics& actual, const QueryStatistics& expected, double tolerance,
                         double output_tolerance) {
  for (const auto& [name, tensor] : all_tensors()) {
    ASSERT_EQ((actual.*tensor).defined(), (expected.*tensor).defined()) << name;
    if (!(expected.*tensor).defined()) continue;
    ASSERT_EQ((actual.*tensor).sizes(), (expected.*tensor).sizes()) << name;
    EXPECT_LT(field_error({name, tensor}, actual, expected),
              machine_factor() * (name == "output" ? output_tolerance : tolerance))
        << name;
  }
  EXPECT_EQ(actual.queries_without_keys, expected.queries_without_keys);
}

}  // namespace gainlens::kernels::testing
