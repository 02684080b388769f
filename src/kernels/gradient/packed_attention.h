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
  /// [position], added to every score of the key; may be undefined. Has a gradient.
  at::Tensor key_bias = {};
  /// [1] or [head], added to a score as many times as query and key are places apart; may be undefined. Has a gradient.
  at::Tensor distance_slope = {};
  /// The last position of each sequence alone is a query: `query` and all results have a row for each sequence. For
  /// evaluation: no dropout, and no gradients. Every sequence needs a position.
  bool last_queries = false;
};

/// Attention of each packed sequence to itself: dropout(softmax(scale Q K^T + biases)) V. libtorch's autograd can
/// differentiate it once. Made for many short sequences, as users' histories are: the cost is that of the weights that
/// exist, and no weights are kept for the backward pass. In float32 on the CPU it is one loop over sequences and heads,
/// whose bits do not depend on the number of threads. Other types and devices pad the sequences and use library calls.
/// @param query, key, value  [position, head, head_dim], the last dimension contiguous or copied
/// @param begin  ascending from 0 to the number of positions
/// @returns [position, head, head_dim]
/// @throws InternalError  shapes or bounds that do not fit
at::Tensor packed_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const PackedBounds& begin, const PackedAttentionOptions& options = {});

/// Attention with its moments. They are those of the weights before dropout.
struct PackedMoments {
  at::Tensor output;    ///< [position, head, head_dim]: as packed_attention()
  at::Tensor n_eff;     ///< [position, head]: 1 / sum p^2, at least 1
  at::Tensor residual;  ///< [position, head, head_dim]: S = sum p (v - e)^2 of each dimension
};

/// packed_attention() and its moments, all with gradients: the products of the weights are done once. S is a sum of
/// squares of offsets from e, in a second pass over the keys, and does not cancel.
PackedMoments packed_attention_moments(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                       const PackedBounds& begin, const PackedAttentionOptions& options = {});

}  // namespace gainlens::kernels
