#pragma once

#include "kernels/attention_agreement.h"

#include <gtest/gtest.h>

namespace gainlens::kernels::testing {

/// Expects that every tensor agrees within `tolerance`, `output` within `output_tolerance`, and that the counts are
/// equal. The error of a tensor is field_error.
inline void expect_close(const QueryStatistics& actual, const QueryStatistics& expected, double tolerance,
                         double output_tolerance) {
  for (const auto& [name, tensor] : all_tensors()) {
    ASSERT_EQ((actual.*tensor).defined(), (expected.*tensor).defined()) << name;
    if (!(expected.*tensor).defined()) continue;
    ASSERT_EQ((actual.*tensor).sizes(), (expected.*tensor).sizes()) << name;
    EXPECT_LT(field_error({name, tensor}, actual, expected), name == "output" ? output_tolerance : tolerance) << name;
  }
  EXPECT_EQ(actual.queries_without_keys, expected.queries_without_keys);
}

}  // namespace gainlens::kernels::testing
