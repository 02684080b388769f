#include "golden/relative_error.h"

#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

namespace gainlens::golden {
namespace relative_error_test {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

at::Tensor numbers(std::initializer_list<double> values) {
  return at::tensor(at::ArrayRef<double>(values), at::kDouble);
}

TEST(RelativeError, LogitsAreMeasuredAgainstTheLargest) {
  EXPECT_DOUBLE_EQ(relative_error(numbers({1.5, -4}), numbers({1, -4}), 1), 0.125);  // 0.5 / 4
}

TEST(RelativeError, SmallValuesAreMeasuredAgainstThemselvesDownToTheFloor) {
  EXPECT_DOUBLE_EQ(relative_error(numbers({1000, 2}), numbers({1000, 4}), 1e-3), 0.5);        // 2 / 4
  EXPECT_DOUBLE_EQ(relative_error(numbers({1000, 0.25}), numbers({1000, 0.0}), 1e-3), 0.25);  // 0.25 / (1e-3 1000)
}

TEST(RelativeError, RootMeanSquareByHand) {
  EXPECT_DOUBLE_EQ(relative_error(numbers({1.75, 0, 4}), numbers({1, 1, 4}), 1, Over::root_mean_square),
                   0.3125 / std::sqrt(3.0));  // 3/16, 4/16, 0
}

TEST(RelativeError, CoincidingNansAreLeftOut) {
  EXPECT_EQ(relative_error(numbers({nan, 2}), numbers({nan, 2}), 1e-3), 0);
}

TEST(RelativeError, WhatIsNotComparableNeverPasses) {
  EXPECT_EQ(relative_error(numbers({nan, 2}), numbers({1, 2}), 1e-3), infinity);
  EXPECT_EQ(relative_error(numbers({1, 2}), numbers({nan, 2}), 1e-3), infinity);
  EXPECT_EQ(relative_error(numbers({nan}), numbers({nan}), 1e-3), infinity);
  EXPECT_EQ(relative_error(numbers({infinity, 2}), numbers({1, 2}), 1e-3), infinity);
  EXPECT_EQ(relative_error(numbers({infinity, 2}), numbers({infinity, 2}), 1e-3), infinity);
  EXPECT_EQ(relative_error(numbers({1, 2}), numbers({1, 2, 3}), 1e-3), infinity);
  EXPECT_EQ(relative_error(at::Tensor(), numbers({1}), 1e-3), infinity);
}

TEST(RelativeError, ZerosMatchOnlyZeros) {
  EXPECT_EQ(relative_error(numbers({0, 0}), numbers({0, 0}), 1e-3), 0);
  EXPECT_EQ(relative_error(numbers({0, 1e-30}), numbers({0, 0}), 1e-3), infinity);
}

}  // namespace relative_error_test
}  // namespace gainlens::golden
