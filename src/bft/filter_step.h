#pragma once

#include "bft/filter_options.h"

#include <ATen/core/Tensor.h>

// One layer of the Bayesian filter, as operations on tensors of any shape with gradients. Precisions are in the inverse
// square of the unit of the stream.

namespace gainlens::bft {

/// K = lambda_obs / (lambda + lambda_obs). Source: the paper, eq. (3) [eq:update].
at::Tensor gain(const at::Tensor& precision, const at::Tensor& observation_precision);

/// lambda' = lambda + lambda_obs, within the bounds of the options. Source: eq. (3).
at::Tensor posterior_precision(const at::Tensor& precision, const at::Tensor& observation_precision,
                               const FilterOptions& options);

/// Least factor of a variance: J = -1 would make the precision infinite.
inline constexpr double least_stretch = 0.01;

/// Factor of the variance in the feed-forward layer: max((1 + J)^2, 0.01). Source: eq. (8) [eq:delta] and the clip
/// that section 3.2 states.
at::Tensor stretch(const at::Tensor& jacobian);

/// Q = softplus(logits) Q_max. Source: section 3.2.
at::Tensor process_noise(const at::Tensor& logits, const FilterOptions& options);

/// lambda'' after the feed-forward layer, within the bounds of the options.
/// @param stretch    as stretch() gives it, or its mean; undefined: 1
/// @param parameter  what `predict` learns: logits of Q [dimension] for `jacobian`, a logit of gamma [1] for `decay`;
///     undefined for `discount`, and for `jacobian` if Q_max is 0
/// Source: eq. (9) [eq:process-noise]; Table 1.
at::Tensor predicted_precision(const at::Tensor& posterior, const at::Tensor& stretch, const at::Tensor& parameter,
                               const FilterOptions& options);

}  // namespace gainlens::bft
