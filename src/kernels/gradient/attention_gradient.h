#pragma once

#include "kernels/attention_statistics.h"

namespace gainlens::kernels {

/// What attention_with_gradient computes. A query that sees no key, or is padding, has output 0, NaN moments and no
/// gradient.
struct DifferentiableAttention {
  at::Tensor output;    ///< [head, query, value_dim], dtype of the inputs: (1 - p_s) e; without a sink logit, e
  at::Tensor n_eff;     ///< [head, query]: 1 / sum p^2, p over the keys alone
  at::Tensor residual;  ///< [head, query, value_dim]: S = sum p (v - e)^2 of each dimension, p over the keys alone
};

/// What to compute in addition to the output.
enum class Moments {
  none,  ///< nothing: `n_eff` and `residual` stay undefined and cost no time
  all,
};

/// Attention with its moments. libtorch's autograd can differentiate it with respect to query, key, value and the
/// tensors key_bias, distance_bias and sink_logit of the options. A T x T tensor never exists: the forward pass keeps
/// the inputs and e, and the backward pass computes the weights again, one block of queries at a time. It consists of
/// library calls and runs on any device. The same input gives the same bits with the same threads.
///
/// These options have an effect: scale, causal, window, sequences, first_query, soft_cap, key_bias, distance_bias and
/// sink_logit. Priors, `returned` and `backend` are checked but have no effect here. n_eff and residual are float64 for
/// float64 inputs, else float32. All is computed in that type, even if the program has switched on TF32 or autocast.
/// The exception: with moments, the sums for e and S are float64 (the error of S: attention_statistics.h).
///
/// Shapes and errors: as attention_statistics_reference; in addition
/// @throws InvalidArgument  in the backward pass, if a second derivative is asked for (create_graph)
DifferentiableAttention attention_with_gradient(const AttentionOptions& options, const at::Tensor& query,
                                                const at::Tensor& key, const at::Tensor& value,
                                                Moments moments = Moments::all);

}  // namespace gainlens::kernels
