#pragma once

#include "models/decoder/decoder_config.h"
#include "models/decoder/decoder_weights.h"
#include "models/decoder/projection.h"

#include <ATen/core/Tensor.h>

namespace gainlens::models {

/// What a layer of the gated delta rule knows of the tokens before. Undefined tensors stand for no token.
struct DeltaState {
  at::Tensor query_past, key_past, value_past;  ///< [batch, kernel - 1, channel] the last positions, not convolved
  at::Tensor state;                             ///< [batch, value_head, key_dim, value_dim]
};

/// Linear attention by the gated delta rule: what such a layer has in place of softmax attention.
///
/// Queries, keys and values pass a short causal convolution and silu. Queries and keys get unit length. With the scores
/// b and a of the token, beta = sigmoid(b) and g = -exp(log_rate) softplus(a + decay_bias). The result of the rule is
/// normalised in each head (RMSNorm, without the offset of other norms), times the silu of a gate, and projected.
/// The rule runs in float32 for narrower types. Blocks of positions follow each other, so memory for more than the
/// result does not grow with the text.
/// Source: Qwen3NextGatedDeltaNet of Hugging Face transformers.
///
/// @param rest      the weights of the layer that are no projections
/// @param input     [batch, position, width]
/// @param residual  [batch, position, width], added to the result; may be undefined
/// @param state     of the tokens before; it is set to that after the last one. Null: there are none before
/// @returns [batch, position, width]
at::Tensor delta_layer(const DecoderConfig& config, const LayerProjections& projections, const LayerWeights& rest,
                       const at::Tensor& input, const at::Tensor& residual, DeltaState* state = nullptr);

}  // namespace gainlens::models
