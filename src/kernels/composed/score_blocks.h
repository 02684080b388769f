#pragma once

#include "kernels/attention_inputs.h"

#include <vector>

namespace gainlens::kernels {

/// What the scores of one sequence are made of, in the type that computes: float64 for float64 inputs, else float32.
struct ScoreInputs {
  AttentionOptions options;  ///< without sequences
  AttentionShape shape;      ///< of the text, without padding
  at::Tensor query;          ///< [head, padded position, head_dim], times the scale
  at::Tensor key;            ///< [kv_head, padded position, head_dim]
  at::Tensor key_bias;       ///< [head or 1, padded position]; undefined: none
  at::Tensor distance_bias;  ///< [head or 1, position]; undefined: none
  at::Tensor sink_logit;     ///< [head]; undefined: none

  /// @param positions  of the text and its padding, which no query of the text sees
  ScoreInputs(const AttentionOptions& options, const AttentionShape& shape, const at::Tensor& query,
              const at::Tensor& key, std::int64_t positions);
  /// Without padding.
  ScoreInputs(const AttentionOptions& options, const AttentionShape& shape, const at::Tensor& query,
              const at::Tensor& key);
};

/// Consecutive queries of the heads of some consecutive kv heads, and the keys that any of them sees.
struct ScoreBlock {
  std::int64_t kv_begin, kv_end;
  std::int64_t query_begin, query_end;
  KeyRange keys;
};

/// The blocks that cover every query of every head from `first_query` on once, kv head by kv head and queries
/// ascending. Each holds about 2^18 scores, and at least 16 queries of one kv head: so tiles stay in a core's cache,
/// and their memory grows with the length, not with its square.
std::vector<ScoreBlock> score_blocks(const AttentionOptions& options, const AttentionShape& shape);

/// The part of a tensor that a block works on. @param t  [head or kv_head or 1, position, ...]
at::Tensor heads_of(const ScoreBlock& block, const AttentionShape& shape,
                    const at::Tensor& t);  ///< its heads; of [1, ...] all
at::Tensor queries_of(const ScoreBlock& block, const AttentionShape& shape,
                      const at::Tensor& t);                        ///< [head, query, ...]: its heads and queries
at::Tensor keys_of(const ScoreBlock& block, const at::Tensor& t);  ///< [kv_head, key, ...]: its kv heads and keys

/// [head, query, x] with the heads of each kv head in one matrix, [kv_head, head of the group x query, x]: one product
/// then serves them all.
at::Tensor group_rows(const ScoreBlock& block, const at::Tensor& t);
/// The other way: [kv_head, head of the group x query, x] as [head, query, x].
at::Tensor by_head(const ScoreBlock& block, const at::Tensor& rows);

/// `tensor` with zeros after its positions (dimension 1), up to `positions` of them.
at::Tensor pad_positions(const at::Tensor& tensor, std::int64_t positions);

/// Scores [head, query, key] as they enter the softmax: scaled, capped, biased, -inf where hidden.
/// @param cap_slope  where not null: set to the derivative of the soft cap [head, query, key] if there is one
at::Tensor block_scores(const ScoreInputs& in, const ScoreBlock& block, at::Tensor* cap_slope = nullptr);

/// A block's softmax.
struct BlockWeights {
  at::Tensor p;  ///< [head, query, key] weights over the keys; hidden keys, and rows without any key, have 0
  at::Tensor
      empty;  ///< [head, query, 1] whether the query sees no key; undefined where a bias is absent and none can be
  at::Tensor sink_mass;  ///< [head, query, 1] p_s; undefined without a sink logit
  at::Tensor keys_mass;  ///< [head, query, 1] 1 - p_s, not formed by subtraction; undefined without a sink logit
  at::Tensor cap_slope;  ///< [head, query, key] derivative of the soft cap; undefined unless asked for and capped
};

BlockWeights block_weights(const ScoreInputs& in, const ScoreBlock& block, bool with_cap_slope);

}  // namespace gainlens::kernels
