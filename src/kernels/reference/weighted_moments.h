#pragma once

#include <span>

namespace gainlens::kernels {

/// Moments of values under attention weights, for one query and one value dimension.
struct WeightedMoments {
  double effective_sample_size;  ///< Kish n_eff = (sum w)^2 / sum w^2, in [1, number of positive weights]
  double mean;                   ///< sum w v / sum w, in the unit of the values
  double residual;               ///< S = sum w (v - mean)^2 / sum w, unit squared, never negative
};

/// Moments in double by two passes: the oracle of the streaming kernels.
///
/// @param weights  [key] non-negative, at least one positive; need not sum to one
/// @param values   [key]
/// @throws InvalidArgument  sizes differ, a weight is negative or not finite, or all are zero
/// Source: the paper, eq. (6) (n_eff, S).
WeightedMoments weighted_moments(std::span<const double> weights, std::span<const double> values);

}  // namespace gainlens::kernels
