#pragma once

#include "hooks/hooked_model.h"
#include "models/decoder_config.h"
#include "models/decoder_weights.h"
#include "models/rope.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace gainlens::models {

/// A pre-norm decoder with rotary positions, driven by its configuration alone. It computes in the dtype of its weights; normalisation
/// runs in float32 for narrower types. No operation works in place on what a gradient needs.
///
/// Sites are named and laid out as in TransformerLens; `sites()` lists them with their shapes. What a name does not say:
/// - `ln1.hook_normalized`, `ln2.hook_normalized`, `ln_final.hook_normalized`: before the norm's weight.
/// - `attn.hook_q`, `hook_k`: as projected, before their norm and rotation; `hook_rot_q`, `hook_rot_k`: after both.
/// - `attn.hook_z`: what attention gives, before the gate; `attn.hook_gate`: sigmoid of the score, which then multiplies z.
/// - `attn.hook_result`: what each head adds to the stream (after the gate, without the bias); replacing it makes the attention output
///   their sum.
/// - `attn.hook_pattern`: observed, it is computed beside the attention operation, whose output stands. Replaced, the layer's output is
///   the new pattern times the values, and the attention operation does not run in this layer.
class Decoder : public hooks::HookedModel {
 public:
  /// @throws InternalError    weights that do not fit the configuration
  /// @throws InvalidArgument  as rope_frequencies
  Decoder(DecoderConfig config, DecoderWeights weights);

  hooks::Stream forward(const hooks::Tokens& tokens, const hooks::ForwardOptions& options, const hooks::Hooks& hooks) override;
  at::Tensor unembed(const at::Tensor& normalized) override;
  std::vector<hooks::SiteShape> sites() const override;
  const hooks::AttentionLayout& layout() const override { return layout_; }
  const DecoderConfig& config() const { return config_; }

 private:
  struct Pass;  // what stays the same through the layers of one forward pass

  void check_request(const hooks::Tokens& tokens, const hooks::ForwardOptions& options, const hooks::Hooks& hooks) const;
  void check_pattern_memory(const hooks::Tokens& tokens, const hooks::ForwardOptions& options, const hooks::Hooks& hooks) const;
  std::int64_t last_layer(const hooks::ForwardOptions& options) const;

  at::Tensor block(std::int64_t layer, at::Tensor hidden, const Pass& pass) const;
  at::Tensor attention(std::int64_t layer, const at::Tensor& input, const Pass& pass) const;
  at::Tensor weighted_values(std::int64_t layer, const hooks::Qkv& qkv, const Pass& pass) const;
  at::Tensor gated(std::int64_t layer, const at::Tensor& z, const at::Tensor& input, const Pass& pass) const;
  at::Tensor output_projection(std::int64_t layer, const at::Tensor& z, const Pass& pass) const;
  at::Tensor mlp(std::int64_t layer, const at::Tensor& input, const Pass& pass) const;

  DecoderConfig config_;
  DecoderWeights weights_;
  RopeFrequencies rope_;
  hooks::AttentionLayout layout_;
};

}  // namespace gainlens::models
