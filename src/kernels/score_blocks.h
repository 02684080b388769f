#pragma once

#include "kernels/attention_inputs.h"

#include <vector>

namespace gainlens::kernels {

/// What the scores of one sequence are made of, in the type that computes: float64 for float64 inputs, else float32.
struct ScoreInputs {
  AttentionOptions options;  ///< without sequences
  AttentionShape shape;
  at::Tensor query;          ///< [head, position, head_dim], times the scale
  at::Tensor key;            ///< [kv_head, position, head_dim]
  at::Tensor key_bias;       ///< [head or 1, position]; undefined: none
  at::Tensor distance_bias;  ///< [head or 1, position]; undefined: none
  at::Tensor sink_logit;     ///< [head]; undefined: none

  ScoreInputs(const AttentionOptions& options, const AttentionShape& shape, const at::Tensor& query, const at::Tensor& key);
};

/// Consecutive queries of the heads of some consecutive kv heads, and the keys that any of them sees.
struct ScoreBlock {
  std::int64_t kv_begin, kv_end;
  std::int64_t query_begin, query_end;
  KeyRange keys;
};

/// The blocks that cover every query of every head once, kv head by kv head and queries ascending. Each holds about 2^18 scores, and at
/// least 16 queries of one kv head: so tiles stay in a core's cache, and their memory grows with the length, not with its square.
std::vector<ScoreBlock> score_blocks(const AttentionOptions& options, const AttentionShape& shape);

/// The part of a tensor that a block works on. @param t  [head or kv_head or 1, position, ...]
at::Tensor heads_of(const ScoreBlock& block, const AttentionShape& shape, const at::Tensor& t);  ///< its heads; of [1, ...] all
at::Tensor queries_of(const ScoreBlock& block, const AttentionShape& shape,
                      const at::Tensor& t);                        ///< [head, query, ...]: its heads and queries
at::Tensor keys_of(const ScoreBlock& block, const at::Tensor& t);  ///< [kv_head, key, ...]: its kv heads and keys

/// [head, query, x] with the heads of each kv head in one matrix, [kv_head, head of the group x query, x]: one product then serves them
/// all.
at::Tensor group_rows(const ScoreBlock& block, const at::Tensor& t);

/// |t - j| of every query and key of the block, [query, key], int64.
at::Tensor distances(const ScoreBlock& block, const at::Device& device);

/// A block's softmax.
struct BlockWeights {
  at::Tensor p;          ///< [head, query, key] weights over the keys; hidden keys, and rows without any key, have 0
  at::Tensor empty;      ///< [head, query, 1] whether the query sees no key; undefined where a bias is absent and none can be
  at::Tensor sink_mass;  ///< [head, query, 1] p_s; undefined without a sink logit
  at::Tensor cap_slope;  ///< [head, query, key] derivative of the soft cap; undefined unless asked for and capped
};

BlockWeights block_weights(const ScoreInputs& in, const ScoreBlock& block, bool with_cap_slope);

}  // namespace gainlens::kernels
