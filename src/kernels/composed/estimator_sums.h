#pragma once

#include "core/estimator.h"
#include "kernels/composed/value_moments.h"

namespace gainlens::kernels {

/// Sums over the keys of a block other than key 0, for estimators other than reml. Without a prior a variance may be
/// far below the squares that it comes from, so the heaviest key h is kept apart: if it has nearly all the weight,
/// v_h - e', n' - 1 and the variances come from the other keys, the rest, and do not cancel. If several keys with equal
/// values share the weight, the variances of the rest still cancel: the members that begin with `rounding` bound what
/// rounding leaves of them. float64.
struct EstimatorSums {
  at::Tensor total;                 ///< [head, query] sum w, w_h = 1
  at::Tensor total_squares;         ///< [head, query] sum w^2
  at::Tensor degrees;               ///< [head, query] n' - 1, never negative; NaN without keys
  at::Tensor offset;                ///< [head, query, value_dim] e' - c
  at::Tensor residual;              ///< [head, query, value_dim] S'
  at::Tensor heaviest;              ///< [head, query, value_dim] v_h - e'
  at::Tensor rounding_of_residual;  ///< [head, query, value_dim] of S'
  at::Tensor rounding_of_squares;   ///< [head, query, value_dim] of weighted_squares(); undefined without `squares`
  /// Moments of the rest under w^2, for sandwich and delta_weight_free. The offset is relative to e'.
  OtherKeys squares;
  /// Moments of the visible keys under equal weights, for kish. The offset is relative to e'.
  OtherKeys visible;

  /// sum p'^2 (v - e' - shift)^2, [head, query, value_dim]; 0 without keys.
  at::Tensor weighted_squares(const at::Tensor& shift) const;
};

/// @param weights  [head, query, key] exp(s - largest s), of key 0 and of hidden keys 0
/// @param seen     [head, query, key] bool, true for the visible keys other than key 0; kish alone reads it
EstimatorSums estimator_sums(Estimator estimator, const ScoreBlock& block, const at::Tensor& weights,
                             const at::Tensor& seen, const CentredValues& values);

}  // namespace gainlens::kernels
