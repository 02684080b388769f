#pragma once

#include "bft/filter_options.h"

#include <ATen/core/Tensor.h>

// One layer of the Bayesian filter, as operations on tensors of any shape with gradients. Precisions are in the inverse
// square of the unit of the stream.

namespace gainlens::bft {

/// K = lambda_obs / (lambda + lambda_obs). Source: the paper, eq. (3) [eq:update].
at::Tensor gain(const at::Tensor& precision, const at::Tensor& observation_precision);

/// What lambda_obs has to be so that gain() minimises the expected square of the error of h + K e, given h, and
/// posterior_precision() is the precision of the result.
///
/// Let x be what h and e estimate: x = h + d and e = x + f, with d and f independent of each other, of mean 0, and of
/// variance 1/lambda and 1/lambda_obs. Then h + K e - x = K (h + d + f) - d, whose mean square given h is
/// K^2 (h^2 + 1/lambda + 1/lambda_obs) - 2 K / lambda + 1/lambda. It is least at
/// K = (1/lambda) / (1/lambda + 1/lambda_obs + h^2), where it is (1 - K) / lambda. Both are the usual formulas with
/// 1 / (1/lambda_obs + h^2) in the place of lambda_obs: e is a measurement of d = x - h, and h is part of its error.
/// @param hidden  h, of the shape of `observation_precision` and in the unit of the stream
at::Tensor least_error_precision(const at::Tensor& observation_precision, const at::Tensor& hidden);

/// lambda' = lambda + lambda_obs, within the bounds of the options. Source: eq. (3).
at::Tensor posterior_precision(const at::Tensor& precision, const at::Tensor& observation_precision,
                               const FilterOptions& options);

/// Least factor of a variance: J = -1 would make the precision infinite.
inline constexpr double min_stretch = 0.01;

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
