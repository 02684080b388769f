#pragma once

#include "bft/filter_options.h"
#include "kernels/gradient/packed_attention.h"

#include <ATen/core/Tensor.h>

namespace gainlens::bft {

/// What the heads of a layer observe at each position.
struct HeadObservation {
  at::Tensor estimate;   ///< [position, head, head_dim] e, with dropout
  at::Tensor n_eff;      ///< [position, head]; per_dimension: [position, head, head_dim]
  at::Tensor precision;  ///< [position, head, head_dim] lambda_obs, within the bounds of the options
};

/// Projections, for the estimator delta: the token that enters has the noise N(0, I / its mean precision).
struct HeadProjections {
  at::Tensor key;    ///< [head, head_dim, model] W_K
  at::Tensor value;  ///< [head, head_dim, model] W_V
};

/// Attention over packed sequences, with the precision of what it gives. Estimators of n_eff and S with scalar kriging
/// take the loop of packed_attention_moments(); the others hold the weights of padded sequences, [sequence, head,
/// query, key]. The statistics are those of the weights before dropout.
/// @param precision    [position, head head_dim] lambda of the keys
/// @param strength     share of the biases of precision and distance that acts, in [0, 1]: 1 but for a blended warm-up
/// @param options      its key_bias must be undefined
/// @param projections  delta needs them
/// Source: the paper, eq. (2) [eq:kriging] and section 3.1; per dimension: docs/bft.md, "Alternatives".
HeadObservation observe_packed(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                               const at::Tensor& precision, const kernels::PackedBounds& begin,
                               const kernels::PackedAttentionOptions& options, const FilterOptions& filter,
                               double strength = 1, const HeadProjections* projections = nullptr);

}  // namespace gainlens::bft
