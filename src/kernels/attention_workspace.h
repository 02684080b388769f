#pragma once

#include "kernels/attention_statistics.h"

#include <ATen/ops/empty.h>

#include <vector>

namespace gainlens::kernels {

/// Buffers of one worker; sizes in the rows of the largest block. All are aligned to 64 bytes, as libtorch's allocator does.
struct WorkerBuffers {
  at::Tensor queries;       ///< [row, head_dim]
  at::Tensor scores;        ///< [row, tile_keys]: scores, then weights
  at::Tensor accumulators;  ///< [row, 2, padded dims]: sum p (v - c), sum p (v - c)^2, without key 0
  at::Tensor first_scores;  ///< [row, first_keys]: scores of keys 0..7, -inf where hidden
  at::Tensor early_values;  ///< [centre_keys, padded dims]: values as they are, for the two-pass form
  at::Tensor dimensions;    ///< [6, padded dims]: rows of one query
};

/// Everything a call needs beside inputs and results. O(T): 2 to 3 times the values, and tiles.
struct AttentionPlan::Workspace {
  at::Tensor keys;              ///< [kv_head, position, head_dim], converted where the inputs are half precision
  at::Tensor packed;            ///< [kv_head, position, 2, padded dims]: v - c and (v - c)^2
  at::Tensor centre;            ///< [kv_head, padded dims]: c
  at::Tensor inverse_variance;  ///< [kv_head, padded dims]: 1 / sv^2, 0 where the values are all equal
  std::vector<WorkerBuffers> workers;
};

/// Makes `buffer` a tensor of this shape and dtype, keeping it where it already is one.
inline void reserve(at::Tensor& buffer, at::IntArrayRef sizes, at::ScalarType type) {
  if (!buffer.defined() || buffer.sizes() != sizes || buffer.scalar_type() != type) buffer = at::empty(sizes, at::TensorOptions(type));
}

}  // namespace gainlens::kernels
