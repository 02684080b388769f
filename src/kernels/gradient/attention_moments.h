#pragma once

#include "kernels/composed/score_blocks.h"
#include "kernels/composed/value_moments.h"

namespace gainlens::kernels {

/// The output, n_eff and S of one sequence; in the backward pass, their gradients.
struct AttentionMoments {
  at::Tensor output;            ///< [head, query, value_dim]: (1 - p_s) e
  at::Tensor n_eff;             ///< [head, query]
  at::Tensor residual;          ///< [head, query, value_dim]: S
  at::Tensor centred_estimate;  ///< [head, query, value_dim]: e minus the centre of the values, for the backward pass
};

/// The forward pass over blocks of queries. `output` has the type of `value`. All other tensors have the type of the
/// computation: float64 for float64 inputs, else float32.
/// @param value    [kv_head, position, value_dim]
/// @param moments  false: `n_eff` and `residual` stay undefined, and the centre is 0
AttentionMoments attention_moments(const ScoreInputs& in, const at::Tensor& value, bool moments);

/// Gradients with respect to the inputs of attention, in the type of the computation and the shapes of ScoreInputs.
/// Undefined: not wanted.
struct AttentionGradients {
  at::Tensor query, key, value, key_bias, distance_bias, sink_logit;
};

/// Which gradients are wanted.
struct WantedGradients {
  bool query, key, value, key_bias, distance_bias, sink_logit;
};

/// The backward pass. It computes the weights of each block again. Let u = v - c, e the estimate minus c, and g_e, g_S,
/// g_n the gradients of e, S and n_eff at one query. Then
/// - a_j = sum_i (g_e,i - 2 g_S,i e_i) u_ji + g_S,i u_ji^2 is the effect of weight j on the loss through e and S =
///   sum_j p_j u_j^2 - e^2;
/// - b_j = a_j - 2 g_n n_eff^2 p_j adds the effect through n_eff = 1 / sum p^2;
/// - ds_j = p_j (b_j - sum_k p_k b_k) is the gradient of score j, through the softmax;
/// - dv_j = p_j (g_e + 2 g_S (u_j - e));
/// - dq = scale sum_j ds_j k_j and dk_j = scale ds_j q; under a soft cap both have the factor 1 - tanh^2 for each j;
/// - the gradient of a bias is the sum of the ds_j of the scores that it was added to;
/// - with a sink logit of mass p_s and g_o the gradient of the output: g_e contains g_o (1 - p_s), ds_j contains p_j
///   p_s (1 - p_s) (g_o . e), and the sum of the latter over the keys is subtracted from the gradient of the sink
///   logit.
/// @param moments           as in the forward pass
/// @param centred_estimate  result of the forward pass
/// @param gradients         of a loss with respect to `output`, `n_eff` and `residual`, in the type of the computation;
///     undefined: zero
AttentionGradients attention_moment_gradients(const ScoreInputs& in, const at::Tensor& value, bool moments,
                                              const at::Tensor& centred_estimate, const AttentionMoments& gradients,
                                              const WantedGradients& wanted);

}  // namespace gainlens::kernels
