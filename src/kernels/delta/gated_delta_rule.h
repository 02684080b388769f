#pragma once

#include <ATen/core/Tensor.h>

namespace gainlens::kernels {

/// What one stretch of a sequence gives to the gated delta rule. Each head has a state S [key_dim, value_dim], which
/// decays and is corrected at every token t:
///
///   S <- exp(g_t) S,   S <- S + k_t beta_t (v_t - S^T k_t)^T,   o_t = S^T q_t / sqrt(key_dim)
///
/// Each head of queries and keys serves `value_head / key_head` neighbouring value heads. All tensors are float32 or
/// all are float64, whatever the type of the model. libtorch's autograd differentiates both forms; it keeps what every
/// chunk needs.
/// Source: Yang, Kautz and Hatamizadeh, "Gated Delta Networks", arXiv:2412.06464, Eq. 10.
struct DeltaInputs {
  at::Tensor query;      ///< [batch, position, key_head, key_dim], of unit length in the models that use it
  at::Tensor key;        ///< [batch, position, key_head, key_dim], of unit length in the models that use it
  at::Tensor value;      ///< [batch, position, value_head, value_dim]
  at::Tensor log_decay;  ///< [batch, position, value_head] g, at most 0
  at::Tensor beta;       ///< [batch, position, value_head], 0 (nothing is written) to 1 (the key's value is replaced)
};

/// One token after the other: the oracle of the function below.
///
/// @param state  [batch, value_head, key_dim, value_dim] before the first token; undefined: zeros. It is set to the
///     state after the last token.
/// @returns o [batch, position, value_head, value_dim]
/// @throws InvalidArgument  shapes or types that do not fit, no position, a log decay above 0
at::Tensor gated_delta_rule_recurrent(const DeltaInputs& inputs, at::Tensor& state);

/// The same, in matrix products over chunks of delta_chunk_positions tokens. It needs memory for one chunk beside its
/// output. A later token changes no bit of what comes before it: the last chunk is filled up to 64.
///
/// Within a chunk with the start state S_0, let D_ij = exp(g_{j+1} + .. + g_i) for i >= j, else 0. The corrections
/// u_i = beta_i (v_i - S^T k_i) solve the triangular system (I + L) U = B V - B diag(D_i0) K S_0, where L_ij =
/// beta_i (k_i . k_j) D_ij for i > j. The sums of g in D_ij are added up for each pair, not as differences of sums from
/// the start: these would lose small decays after a large one.
/// Source: arXiv:2412.06464, section 3.3.
at::Tensor gated_delta_rule_chunked(const DeltaInputs& inputs, at::Tensor& state);

/// x / sqrt(sum(x^2) + 1e-6) over the last dimension, in float32 (float64 stays).
/// @throws RunFailed  the squares overflow
at::Tensor l2_normalised(const at::Tensor& x);

}  // namespace gainlens::kernels
