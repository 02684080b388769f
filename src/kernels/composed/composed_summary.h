#pragma once

#include "kernels/composed/score_blocks.h"

namespace gainlens::kernels {

/// What a block of queries has summed up, as tensors on the device of the inputs, float64 but for the scores. "Others"
/// are the visible keys but key 0.
struct BlockSums {
  at::Tensor maximum;  ///< [head, query], largest score of the others; the type's lowest number where there is none
  at::Tensor total;    ///< [head, query] sum exp(s - maximum) over the others
  at::Tensor total_squares;    ///< [head, query] sum exp(2 (s - maximum))
  at::Tensor weighted_score;   ///< [head, query] sum exp(s - maximum) (s - maximum)
  at::Tensor first_scores;     ///< [head, query, first_keys] scores of keys 0.., -inf where hidden
  at::Tensor estimate_others;  ///< [head, query, head_dim] e', mean of the others' values
  at::Tensor first_distance;   ///< [head, query, head_dim] v_0 - e'
  at::Tensor residual_others;  ///< [head, query, head_dim] S'
};

/// What does not change from block to block, float64.
struct SummaryPriors {
  at::Tensor
      inverse_variance;  ///< [head, 1, head_dim] 1 / sv^2, 0 where the values are all equal; undefined: not wanted
  at::Tensor prior_precision;  ///< [head, query, head_dim] lambda; undefined: the one number of the options
  at::Tensor sink_logit;       ///< [head, 1]; undefined: none
};

/// Adds key 0 to the sums of the queries [begin, begin + queries of the block) and writes every wanted field of those
/// that exist. `column_mean`, `value_variance` and `queries_without_keys` are left alone.
void summarise_block(const AttentionOptions& options, const AttentionShape& shape, const SummaryPriors& priors,
                     const BlockSums& sums, std::int64_t begin, QueryStatistics& result);

/// What is known once every block is written: `column_mean` from `first_mass`, `queries_without_keys` from `n_eff`.
/// Waits for the device.
void finish_statistics(const AttentionOptions& options, QueryStatistics& result);

}  // namespace gainlens::kernels
