#pragma once

#include "hooks/hooks.h"
#include "models/decoder/decoder_config.h"
#include "models/decoder/projection.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace gainlens::models {

/// What the activation of a feed-forward layer reads, [batch, position, mlp_width].
struct PreActivations {
  at::Tensor gates;    ///< a gated layer: what enters the activation; undefined without a gate
  at::Tensor neurons;  ///< a gated layer: what the gate multiplies; else what enters the activation
};

/// What the activation of the layer that every token passes reads of an input, without hooks.
PreActivations pre_activations(const DecoderConfig& config, const LayerProjections& layer_projections,
                               const at::Tensor& input);

/// The feed-forward layer that every token passes: down(act(gate) * up), or down(act(up)) without a gate. Fires
/// mlp.hook_pre, mlp.hook_pre_linear (only with a gate) and mlp.hook_post.
/// @param input     [batch, position, width]
/// @param residual  [batch, position, width], added to the result; may be undefined
/// @param seen      not null: filled in
at::Tensor dense_feedforward(const DecoderConfig& config, const LayerProjections& layer_projections, std::int64_t layer,
                             const at::Tensor& input, const at::Tensor& residual, const hooks::Hooks& hooks,
                             PreActivations* seen = nullptr);

/// The sum of the outputs of the chosen experts, each times its router weight, plus the output of the shared expert if
/// the configuration has one. Fires mlp.hook_expert_weights [batch, position, expert], with 0 for experts that are not
/// chosen. If a hook replaces these weights, experts of weight 0 do not run.
///
/// The shared expert is a gated layer of its own width, which every token passes: sigmoid(score(x)) shared(x), or
/// shared(x) without a score. Source: Qwen2MoeSparseMoeBlock of Hugging Face transformers.
///
/// If the weights are normalised, the softmax is over the logits of the chosen experts: the same as normalising the
/// chosen shares of the softmax over all experts. It runs in float32 for narrower types. Among equal logits, libtorch's
/// topk decides. With sigmoid scores, normalised weights are the chosen scores over their sum. If experts stand in
/// groups, a token chooses among those of the best groups (DeepseekV3TopkRouter of Hugging Face transformers).
/// @param input  [batch, position, width]
at::Tensor expert_feedforward(const DecoderConfig& config, const LayerProjections& layer_projections,
                              std::int64_t layer, const at::Tensor& input, const hooks::Hooks& hooks);

}  // namespace gainlens::models
