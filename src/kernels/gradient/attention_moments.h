#pragma once

#include "kernels/composed/score_blocks.h"
#include "kernels/composed/value_moments.h"

namespace gainlens::kernels {

/// e, n_eff and S of one sequence, or their gradients on the way back.
struct AttentionMoments {
  at::Tensor output;    ///< [head, query, head_dim]: (1 - p_s) e
  at::Tensor n_eff;     ///< [head, query]
  at::Tensor residual;  ///< [head, query, head_dim]: S
  at::Tensor
      centred_estimate;  ///< [head, query, head_dim]: e less the centre of the values; what the gradients start from
};

/// The forward pass over blocks of queries. `output` has the type of `value`, all else the type that computes.
/// @param value    [kv_head, position, head_dim]
/// @param moments  false: `n_eff` and `residual` stay undefined, and the centre is 0
AttentionMoments attention_moments(const ScoreInputs& in, const at::Tensor& value, bool moments);

/// Gradients with respect to what attention is computed from, in the type that computes and the shapes of ScoreInputs;
/// undefined: not wanted.
struct AttentionGradients {
  at::Tensor query, key, value, key_bias, distance_bias, sink_logit;
};

/// Which of them are wanted.
struct WantedGradients {
  bool query, key, value, key_bias, distance_bias, sink_logit;
};

/// The backward pass, which computes the weights of each block again. With u = v - c, e the estimate less c, and g_e,
/// g_S, g_n the gradients of e, S and n_eff at one query: a_j = sum_i (g_e,i - 2 g_S,i e_i) u_ji + g_S,i u_ji^2 what
/// weight j does to the loss through e and S = sum_j p_j u_j^2 - e^2 ds_j = p_j (b_j - sum_k p_k b_k), b_j = a_j - 2
/// g_n n_eff^2 p_j through n_eff = 1 / sum p^2, and the softmax dv_j = p_j (g_e + 2 g_S (u_j - e)), dq = scale sum_j
/// ds_j k_j, dk_j = scale ds_j q, both times 1 - tanh^2 under a soft cap a bias gets the sum of the ds_j it was added
/// to; a sink logit of mass p_s makes g_e of g_o (1 - p_s), and adds to ds_j p_j p_s (1 - p_s) (g_o . e), which summed
/// over the keys is what the sink logit loses.
/// @param moments           as the forward pass was called
/// @param centred_estimate  its result
/// @param gradients         of a loss with respect to `output`, `n_eff`, `residual`, in the type that computes;
///     undefined: zero
AttentionGradients attention_moment_gradients(const ScoreInputs& in, const at::Tensor& value, bool moments,
                                              const at::Tensor& centred_estimate, const AttentionMoments& gradients,
                                              const WantedGradients& wanted);

}  // namespace gainlens::kernels
