#pragma once

#include "support/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace gainlens::testing {

/// The program says in one line why it refuses, with exit code 2. It may have printed something before.
inline void expect_refusal_line(const ProgramResult& result, const std::string& reason) {
  EXPECT_EQ(result.exit_code, 2) << result.out << result.error;
  EXPECT_THAT(result.error, ::testing::AllOf(::testing::StartsWith("gainlens: error: "), ::testing::HasSubstr(reason)));
  EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
}

/// Likewise, and nothing is on stdout.
inline void expect_refused(const ProgramResult& result, const std::string& reason) {
  expect_refusal_line(result, reason);
  EXPECT_EQ(result.out, "");
}

}  // namespace gainlens::testing
