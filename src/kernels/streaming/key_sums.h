#pragma once

#include "kernels/key_means.h"
#include "kernels/streaming/attention_workspace.h"

#include <ATen/core/Tensor.h>

#include <cmath>
#include <cstdint>

namespace gainlens::kernels {

/// Which worker takes a block is left to chance, and sums must not depend on it. So the sums of all keys are added in
/// whole numbers: a sum of weights p in units of 1 / key_sum_unit. A sum over `length` queries fits into 63 bits.
inline double key_sum_unit(std::int64_t length) {
  return std::ldexp(1.0, 61 - std::ilogb(static_cast<double>(length)));
}

/// What the weights of one key are computed from, for the heads that are processed at a time.
template <typename Real>
struct NarrowInputs {
  const AttentionOptions& options;
  const AttentionShape& shape;
  const at::Tensor& query;          ///< [head, position, key_dim], last dimension contiguous
  const at::Tensor& key;            ///< [kv_head, position, key_dim], last dimension contiguous
  const at::Tensor& key_bias;       ///< [head or 1, key] or undefined
  const at::Tensor& distance_bias;  ///< [head or 1, 2 length - 1], as in StreamingCall; or undefined
  const at::Tensor& normaliser;     ///< [head, position] float64: p = exp(s - normaliser)
  const at::Tensor& counts;         ///< queries_of_keys()
  const at::Tensor& first_mass;     ///< of QueryStatistics, or undefined
};

/// Sums of all keys.
/// @returns  [head, window, key] float64
at::Tensor sums_of_all_keys(const AttentionShape& shape, const std::vector<WorkerBuffers>& workers);

/// Sums of the keys whose bound allows a column mean of `min_key_mean`, computed exactly in a second pass over the
/// queries that see them; 0 of the other keys.
/// @returns  [head, window, key] float64
template <typename Real>
at::Tensor sums_of_large_keys(const NarrowInputs<Real>& in, const std::vector<WorkerBuffers>& workers);

}  // namespace gainlens::kernels
