#pragma once

#include "kernels/attention_statistics.h"

namespace gainlens::kernels {

/// What attention_with_gradient computes. A query that sees no key, or is padding, has output 0, NaN moments and no
/// gradient.
struct DifferentiableAttention {
  at::Tensor output;    ///< [head, query, head_dim], dtype of the inputs: (1 - p_s) e, so e itself without a sink logit
  at::Tensor n_eff;     ///< [head, query]: 1 / sum p^2, p over the keys alone
  at::Tensor residual;  ///< [head, query, head_dim]: S = sum p (v - e)^2 of each dimension, p over the keys alone
};

/// What to compute beside the output.
enum class Moments {
  none,  ///< nothing: `n_eff` and `residual` stay undefined and cost nothing
  all,
};

/// Attention with its moments, differentiable by libtorch's autograd with respect to query, key, value and the tensors
/// key_bias, distance_bias and sink_logit of the options. No tensor of T x T: the forward pass keeps the inputs and e,
/// the backward pass computes the weights again, a block of queries at a time. Library calls only, on any device; the
/// same input gives the same bits on the same threads.
///
/// Of the options those count that shape the weights: scale, causal, window, sequences, soft_cap, biases, sink_logit.
/// Priors, `returned` and `backend` are checked but mean nothing here. n_eff and residual are float64 for float64
/// inputs, else float32, in which type all is computed, whatever TF32 or autocast the program has switched on; but with
/// moments the sums behind e and S are float64 (attention_statistics.h tells the error of S).
///
/// Shapes and errors: as attention_statistics_reference; and
/// @throws InvalidArgument  in the backward pass, if it is itself to be differentiated (create_graph): there are no
///     second derivatives
DifferentiableAttention attention_with_gradient(const AttentionOptions& options, const at::Tensor& query,
                                                const at::Tensor& key, const at::Tensor& value,
                                                Moments moments = Moments::all);

}  // namespace gainlens::kernels
