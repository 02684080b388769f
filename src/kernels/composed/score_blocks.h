#pragma once

#include "kernels/attention_inputs.h"

#include <vector>

namespace gainlens::kernels {

/// What the scores of one sequence are computed from, in the type of the computation: float64 for float64 inputs, else
/// float32.
struct ScoreInputs {
  AttentionOptions options;  ///< without sequences
  AttentionShape shape;      ///< of the text, without padding
  at::Tensor query;          ///< [head, padded position, key_dim], times the scale
  at::Tensor key;            ///< [kv_head, padded position, key_dim]
  at::Tensor key_bias;       ///< [head or 1, padded position]; undefined: no bias
  at::Tensor distance_bias;  ///< [head or 1, position]; undefined: no bias
  at::Tensor sink_logit;     ///< [head]; undefined: no sink logit

  /// @param positions  number of positions with padding; no query of the text sees the padding
  ScoreInputs(const AttentionOptions& options, const AttentionShape& shape, const at::Tensor& query,
              const at::Tensor& key, std::int64_t positions);
  /// The inputs without padding.
  ScoreInputs(const AttentionOptions& options, const AttentionShape& shape, const at::Tensor& query,
              const at::Tensor& key);
};

/// Consecutive queries of the heads of some consecutive kv heads, and the keys that any of them sees.
struct ScoreBlock {
  std::int64_t kv_begin, kv_end;
  std::int64_t query_begin, query_end;
  KeyRange keys;
};

/// The blocks. Together they hold every query of every head from `first_query` on, each once, kv head by kv head and
/// with ascending queries. A block holds about 2^18 scores, and at least 16 queries of one kv head. So a tile stays in
/// a core's cache, and memory grows with the length, not with its square. On a GPU, where starting a computation takes
/// longer than a small one, it holds 2^24 scores.
std::vector<ScoreBlock> score_blocks(const AttentionOptions& options, const AttentionShape& shape,
                                     const at::Device& device);

/// The part of a tensor that a block works on: the block's heads (all of [1, ...]), its heads and queries, or its kv
/// heads and keys.
/// @param t  [head or kv_head or 1, position, ...]
at::Tensor heads_of(const ScoreBlock& block, const AttentionShape& shape, const at::Tensor& t);
at::Tensor queries_of(const ScoreBlock& block, const AttentionShape& shape, const at::Tensor& t);
at::Tensor keys_of(const ScoreBlock& block, const at::Tensor& t);

/// Reshapes [head, query, x] to [kv_head, head of the group x query, x]. So one matrix product serves all heads of a
/// group.
at::Tensor group_rows(const ScoreBlock& block, const at::Tensor& t);
/// The inverse: reshapes [kv_head, head of the group x query, x] to [head, query, x].
at::Tensor by_head(const ScoreBlock& block, const at::Tensor& rows);

/// `tensor` with zeros after its positions (dimension 1), up to `positions` of them.
at::Tensor pad_positions(const at::Tensor& tensor, std::int64_t positions);

/// Scores [head, query, key] as they enter the softmax: scaled, capped, biased, -inf if hidden.
/// @param cap_slope  if not null: set to the derivative of the soft cap [head, query, key]; not set without a soft cap
at::Tensor block_scores(const ScoreInputs& in, const ScoreBlock& block, at::Tensor* cap_slope = nullptr);

/// A block's softmax.
struct BlockWeights {
  at::Tensor p;  ///< [head, query, key] weights over the keys; 0 for hidden keys and for queries that see no key
  /// [head, query, 1] true if the query sees no key. Undefined without biases: then every query sees a key.
  at::Tensor empty;
  at::Tensor sink_mass;  ///< [head, query, 1] p_s; undefined without a sink logit
  at::Tensor keys_mass;  ///< [head, query, 1] 1 - p_s, not computed by subtraction; undefined without a sink logit
  at::Tensor cap_slope;  ///< [head, query, key] derivative of the soft cap; undefined without one or if not asked for
};

BlockWeights block_weights(const ScoreInputs& in, const ScoreBlock& block, bool with_cap_slope);

}  // namespace gainlens::kernels
