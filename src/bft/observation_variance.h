#pragma once

#include "bft/estimators.h"

#include <ATen/core/Tensor.h>

namespace gainlens::bft {

/// Weights and values of attention, of every query of every head. Gradients flow through `weights` and `values`.
struct AttentionWeights {
  at::Tensor weights;  ///< [batch, head, query, key] 0 at hidden keys; rows need not sum to one
  at::Tensor values;   ///< [batch, head, key, dimension] after KV heads are repeated; finite at hidden keys too
  /// Bool, of a shape that broadcasts to that of the weights; kish alone reads it. Undefined: causal, key j is visible
  /// to query t if j <= t, with as many queries as keys.
  at::Tensor visible = {};
};

/// What delta needs of tokens and projections. Scores are q·(W_K h) / sqrt(d) plus what does not depend on h (a bias, a
/// mask); positions that rotate keys are not treated. Gradients flow through all four.
struct NoisyTokens {
  at::Tensor query;             ///< [batch, head, query, dimension]
  at::Tensor key_projection;    ///< [head, dimension, model] W_K
  at::Tensor value_projection;  ///< [head, dimension, model] W_V
  at::Tensor token_precision;   ///< [batch, key] above 0; the noise of token j is N(0, I / token_precision_j)
};

/// Variance V of the estimates, by differentiable operations of ATen: what observe() computes, for whole tensors. It is
/// the reference of faster forms: it takes the weights as a T x T tensor. No tensor of T x T x d is made.
///
/// V is NaN where observe() says so; no gradient flows from there, and none of its neighbours becomes NaN. Weights of a
/// query that are all 0 mean that it sees no key.
/// @param noise  delta needs it, the others do not read it
/// @return [batch, head, query, dimension] in the dtype of the weights
/// @throws InvalidArgument  shapes or dtypes do not fit, delta without `noise`, options as check() says
/// Source: docs/estimators.md.
at::Tensor observation_variance(Estimator estimator, const AttentionWeights& attention,
                                const EstimatorOptions& options = {}, const NoisyTokens* noise = nullptr);

/// The variance of an estimate from n_eff and S, for reml, reml_naive and reml_conjugate. NaN as observe() says.
/// @param n_eff      [..] or [.., 1]
/// @param dimensions d of sigma0^2 = 1/d
/// @throws InternalError  another estimator
at::Tensor variance_of_moments(Estimator estimator, const at::Tensor& n_eff, const at::Tensor& residual,
                               const EstimatorOptions& options, std::int64_t dimensions);

/// lambda_obs = 1/V within the bounds of the options; NaN where V is.
at::Tensor observation_precision(const at::Tensor& variance, const EstimatorOptions& options = {});

}  // namespace gainlens::bft
