#pragma once

#include "kernels/composed/estimator_sums.h"
#include "kernels/composed/score_blocks.h"

namespace gainlens::kernels {

/// The sums of a block of queries, as tensors on the device of the inputs, float64 except the scores. "Others" are the
/// visible keys other than key 0.
struct BlockSums {
  at::Tensor maximum;          ///< [head, query] largest score of the others; the type's lowest number if there is none
  at::Tensor total;            ///< [head, query] sum exp(s - maximum) over the others
  at::Tensor total_squares;    ///< [head, query] sum exp(2 (s - maximum))
  at::Tensor weighted_score;   ///< [head, query] sum exp(s - maximum) (s - maximum)
  at::Tensor first_scores;     ///< [head, query, first_keys] scores of keys 0, 1, ..., -inf if hidden
  at::Tensor estimate_others;  ///< [head, query, value_dim] e', mean of the others' values
  at::Tensor first_distance;   ///< [head, query, value_dim] v_0 - e'
  at::Tensor residual_others;  ///< [head, query, value_dim] S'
  EstimatorSums estimator;     ///< undefined for reml
};

/// What is the same for all blocks, float64.
struct SummaryPriors {
  at::Tensor inverse_variance;  ///< [head, 1, value_dim] 1 / sv^2, 0 if all values are equal; undefined: not wanted
  at::Tensor prior_precision;   ///< [head, query, value_dim] lambda; undefined: the one number of the options
  at::Tensor sink_logit;        ///< [head, 1]; undefined: no sink logit
};

/// Adds key 0 to the sums of the queries that start at `begin`, and writes every wanted field of the queries that exist
/// (not padding). Does not write `column_mean`, `value_variance` and `queries_without_keys`.
void summarise_block(const AttentionOptions& options, const AttentionShape& shape, const SummaryPriors& priors,
                     const BlockSums& sums, std::int64_t begin, QueryStatistics& result);

/// Sets what depends on all blocks: `column_mean` from `first_mass`, and `queries_without_keys` from `n_eff`. Waits for
/// the device.
void finish_statistics(const AttentionOptions& options, QueryStatistics& result);

}  // namespace gainlens::kernels
