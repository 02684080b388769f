#pragma once

#include "hooks/hooks.h"
#include "models/decoder/decoder_config.h"
#include "models/decoder/decoder_weights.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace gainlens::models {

/// The feed-forward layer every token passes: down(act(gate) * up), or down(act(up)) where it is not gated. Fires
/// mlp.hook_pre, mlp.hook_pre_linear (gated only) and mlp.hook_post.
/// @param input  [batch, position, width]
at::Tensor dense_feedforward(const DecoderConfig& config, const LayerWeights& weights, std::int64_t layer,
                             const at::Tensor& input, const hooks::Hooks& hooks);

/// The sum of the chosen experts' outputs, each times its router weight. Fires mlp.hook_expert_weights [batch,
/// position, expert], 0 where an expert is not chosen; replaced, experts of weight 0 do not run.
///
/// Softmax over the chosen experts' logits where the weights are normalised, which is the same as normalising the
/// chosen shares of the softmax over all; it runs in float32 for narrower types. Of equal logits libtorch's topk
/// chooses.
/// @param input  [batch, position, width]
at::Tensor expert_feedforward(const DecoderConfig& config, const LayerWeights& weights, std::int64_t layer,
                              const at::Tensor& input, const hooks::Hooks& hooks);

}  // namespace gainlens::models
