#pragma once

#include <ATen/core/Tensor.h>

namespace gainlens::golden {

/// How the errors of single values become one.
enum class Over {
  largest,
  root_mean_square,  ///< for rounding noise, of which the largest is itself noisy
};

/// |found - expected| / max(|expected|, floor max|expected|) over all values: how far a result is from its golden,
/// where both are numbers.
///
/// Infinity, which passes no tolerance, where shapes differ, NaNs do not coincide, either holds an infinity, or nothing
/// is left to compare.
/// @param floor  1 measures against the largest value; 1e-3 keeps small values honest without dividing by zero
double relative_error(const at::Tensor& found, const at::Tensor& expected, double floor, Over over = Over::largest);

}  // namespace gainlens::golden
