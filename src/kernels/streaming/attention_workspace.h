#pragma once

#include "kernels/attention_statistics.h"
#include "kernels/row_alignment.h"

#include <ATen/ops/empty.h>

#include <type_traits>
#include <vector>

namespace gainlens::kernels {

/// Buffers of one worker. A row count is that of the largest block, rounded up to whole strips. All buffers are aligned
/// to 64 bytes, as is all memory of libtorch's allocator.
struct WorkerBuffers {
  at::Tensor queries;  ///< [row, padded key_dim], times the scale
  /// [row, tile_keys]: scores, then weights; [tile, row, tile_keys] of all tiles of a block where the weights are kept
  at::Tensor scores;
  at::Tensor accumulators;  ///< [row, 2, width] float64: sum p u and sum p u^2 over the keys other than key 0
  at::Tensor first_scores;  ///< [row, first_keys]: scores of keys 0..7, -inf if hidden
  at::Tensor dimensions;    ///< [DimensionRow, width]: the rows of one query
  at::Tensor top_scores;    ///< [row, top_keys]: the largest scores so far, for `top_weight`
  at::Tensor top_keys;      ///< [row, top_keys] int64: their keys
  at::Tensor key_tile;      ///< [tile_keys]: sums over the queries of a block, for one head and tile
  /// Over the blocks of this worker, for `key_mean`. Of all keys: [head, part of the text, key] int64, in units of
  /// key_sum_unit. Of large keys: [head, key] float64, bounds of the sums from above.
  at::Tensor key_sums;
};

/// The memory that a call needs in addition to inputs and results, for the kv heads that are processed at a time.
/// Values are packed as u = (v - c) / unit.
struct AttentionPlan::Workspace {
  at::Tensor keys;              ///< [kv_head, panel, key_dim, panel columns]
  at::Tensor values;            ///< [kv_head, tile, 2 * panels, tile_keys, panel columns]: u, then u^2
  at::Tensor centre;            ///< [kv_head, width]: c
  at::Tensor unit;              ///< [kv_head, width]: a power of two
  at::Tensor scale;             ///< [kv_head, width]: 1 / unit
  at::Tensor early_values;      ///< [kv_head, centre_keys, width]: (v - v_0) / unit of the first keys, for two passes
  at::Tensor first_value;       ///< [kv_head, width]: v_0
  at::Tensor first_offset;      ///< [kv_head, width]: (v_0 - c) / unit
  at::Tensor inverse_variance;  ///< [kv_head, width]: unit^2 / sv^2, 0 if the values are all equal
  at::Tensor size;              ///< [kv_head, 1]: the power of two at or below the largest |v|, for norms
  at::Tensor normaliser;        ///< [head, position] float64: p = exp(s - normaliser), for `key_mean`
  std::vector<WorkerBuffers> workers;
};

/// Makes `buffer` a tensor of this shape and dtype. Keeps it if it is one already.
inline void reserve(at::Tensor& buffer, at::IntArrayRef sizes, at::ScalarType type) {
  if (!buffer.defined() || buffer.sizes() != sizes || buffer.scalar_type() != type)
    buffer = at::empty(sizes, at::TensorOptions(type));
}

/// A contiguous tensor as rows along its first dimension; empty if it is undefined. Asking a tensor for its data costs
/// more than reading the data, so inner loops hold Rows.
template <typename Real>
Rows<Real> rows_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  if constexpr (std::is_const_v<Real>) {
    return {tensor.const_data_ptr<std::remove_const_t<Real>>(), tensor.stride(0)};
  } else {
    return {tensor.mutable_data_ptr<Real>(), tensor.stride(0)};
  }
}

}  // namespace gainlens::kernels
