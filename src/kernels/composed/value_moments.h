#pragma once

#include "kernels/composed/score_blocks.h"

namespace gainlens::kernels {

/// Values as the products with weights take them: u = v - c and its square side by side, so that one product serves
/// both. In float64, where sums over any number of keys keep float32's digits and no square of a float32 vanishes or
/// overflows.
struct CentredValues {
  at::Tensor centre;  ///< [kv_head, 1, head_dim]: c
  at::Tensor packed;  ///< [kv_head, position, 2 head_dim]: [u | u^2]

  /// @param value  [kv_head, position, head_dim], any floating type   @param centre  [kv_head, 1, head_dim] float64
  CentredValues(const at::Tensor& value, at::Tensor centre);

  /// u of all keys, [kv_head, position, head_dim].
  at::Tensor offsets() const { return packed.slice(2, 0, packed.size(2) / 2); }
};

/// Moments over the keys of a block other than key 0, float64. Zeros where there are none.
struct OtherKeys {
  at::Tensor weight;    ///< [head, query, 1] sum of their weights
  at::Tensor offset;    ///< [head, query, head_dim] e' - c
  at::Tensor residual;  ///< [head, query, head_dim] S', never negative
};

/// Where key 0 takes nearly all the weight, sums over all keys would leave S to the rounding of p u^2: so it stays
/// apart, for the caller to add.
/// @param weights  [head, query, key] of the block, not negative; need not sum to one
OtherKeys moments_of_others(const ScoreBlock& block, const at::Tensor& weights, const CentredValues& values);

}  // namespace gainlens::kernels
