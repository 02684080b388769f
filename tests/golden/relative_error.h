#pragma once

#include <ATen/core/Tensor.h>

namespace gainlens::golden {

/// How the errors of single values are combined into one number.
enum class Over {
  largest,
  root_mean_square,  ///< for rounding noise, whose largest value is itself noisy
};

/// How far a result is from its golden: |found - expected| / max(|expected|, floor max|expected|), combined over all
/// values that are numbers in both.
///
/// Infinity, which passes no tolerance, if the shapes differ, if the NaNs are at different places, if either holds an
/// infinity, or if no value is left to compare.
/// @param floor  1 compares every value with the largest value. 1e-3 compares small values with their own size, without
///     a division by zero.
double relative_error(const at::Tensor& found, const at::Tensor& expected, double floor, Over over = Over::largest);

}  // namespace gainlens::golden
