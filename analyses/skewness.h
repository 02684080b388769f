#pragma once

#include "analyses/measured.h"

#include <span>

namespace gainlens::analyses {

/// Beyond this skewness, in magnitude, Student's t of a mean over 30 units or more is ruled from no longer. With it
/// simulated rulings hold their level, whatever the skewness. Source: docs/analyses/coverage.md, "Skewed documents".
inline constexpr double max_skewness = 1;

/// Third moment about the mean over the 3/2 power of the second, both with ddof 0; above 0 with a long tail upwards.
/// Missing with fewer than three values, or if they are alike.
/// @param values  finite
/// @param scale   size of the terms that the values were computed from: if they differ by its rounding alone, they are
///     alike; 0: only equal values are
Measured skewness(std::span<const double> values, double scale = 0);

}  // namespace gainlens::analyses
