#pragma once

#include "kernels/composed/score_blocks.h"

namespace gainlens::kernels {

/// Values in the form in which they are multiplied by weights: u = v - c and u^2 side by side, so that one product
/// serves both. They are float64: sums over any number of keys then keep at least the digits of float32, and no square
/// of a float32 underflows to 0 or overflows.
struct CentredValues {
  at::Tensor centre;  ///< [kv_head, 1, value_dim]: c
  at::Tensor packed;  ///< [kv_head, position, 2 value_dim]: [u | u^2]

  /// @param value   [kv_head, position, value_dim], any floating point type
  /// @param centre  [kv_head, 1, value_dim] float64
  CentredValues(const at::Tensor& value, at::Tensor centre);

  /// u of all keys, [kv_head, position, value_dim].
  at::Tensor offsets() const { return packed.slice(2, 0, packed.size(2) / 2); }
};

/// Moments over the keys of a block other than key 0, float64. Zero if there are no such keys, or no weight.
struct OtherKeys {
  at::Tensor weight;    ///< [head, query, 1] sum of their weights
  at::Tensor offset;    ///< [head, query, value_dim] e' - c
  at::Tensor residual;  ///< [head, query, value_dim] S', never negative
};

/// Moments of the keys of a block without key 0. The caller adds key 0. If key 0 has nearly all the weight, a sum over
/// all keys would leave S to the rounding of p u^2.
/// @param weights  [head, query, key] of the block, not negative; they need not sum to one
OtherKeys moments_of_others(const ScoreBlock& block, const at::Tensor& weights, const CentredValues& values);

}  // namespace gainlens::kernels
