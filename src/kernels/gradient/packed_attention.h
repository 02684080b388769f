#pragma once

#include "kernels/gradient/dropout.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace gainlens::kernels {

/// Sequences that lie one after another in the rows of a tensor, without padding: sequence s has the rows begin[s] to
/// begin[s + 1] - 1.
using PackedBounds = std::vector<std::int64_t>;

struct PackedAttentionOptions {
  double scale = 0;    ///< factor on q.k; 0 means 1/sqrt(head_dim)
  bool causal = true;  ///< a query sees the keys of its sequence up to itself; else all keys of its sequence
  /// Of the weights. The mask of a weight has the row (first_row + query row) heads + head, and as column the key's
  /// place in its sequence.
  Dropout dropout;
};

/// Attention of each packed sequence to itself: dropout(softmax(scale Q K^T)) V. libtorch's autograd can differentiate
/// it once. Made for many short sequences, as users' histories are: the cost is that of the weights that exist, and no
/// weights are kept for the backward pass. In float32 on the CPU it is one loop over sequences and heads, whose bits do
/// not depend on the number of threads. Other types and devices pad the sequences and use library calls.
/// @param query, key, value  [position, head, head_dim], the last dimension contiguous or copied
/// @param begin  ascending from 0 to the number of positions
/// @returns [position, head, head_dim]
/// @throws InternalError  shapes or bounds that do not fit
at::Tensor packed_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const PackedBounds& begin, const PackedAttentionOptions& options = {});

}  // namespace gainlens::kernels
