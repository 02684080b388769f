#pragma once

#include "hooks/hooked_model.h"
#include "models/decoder/decoder_config.h"
#include "models/decoder/decoder_weights.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace gainlens::models {

/// Gives the weights of one layer when the forward pass comes to it, for models that are not held in memory.
class LayerSource {
 public:
  virtual ~LayerSource() = default;
  /// @throws InvalidArgument  as load_checkpoint
  virtual LayerWeights load(std::int64_t layer) = 0;
};

/// A decoder driven by its configuration alone. It computes in the dtype of its weights; normalisation runs in float32
/// for narrower types. No operation works in place on what a gradient needs.
///
/// Sites are named and laid out as in TransformerLens; `sites()` lists them with their shapes. What a name does not
/// say:
/// - `hook_embed`: the tokens after the embedding's scale; `hook_pos_embed`: what learned positions add; both before
/// the embedding's norm.
/// - `ln1.hook_normalized`, `ln2.hook_normalized`, `ln_final.hook_normalized`: before the norm's weight; `ln1_post`,
///   `ln2_post`: of the norms behind attention and MLP, whose result `hook_attn_out` and `hook_mlp_out` show.
/// - `attn.hook_q`, `hook_k`: as projected (and clipped), before their norm and rotation; `hook_rot_q`, `hook_rot_k`:
/// after both.
/// - `attn.hook_z`: what attention gives, before the gate; `attn.hook_gate`: sigmoid of the score, which then
/// multiplies z.
/// - `attn.hook_result`: what each head adds to the stream (after the gate, without bias and norm); replacing it makes
///   the attention output their sum.
/// - `attn.hook_pattern`: observed, it is computed beside the attention operation, whose output stands. Replaced, the
///   layer's output is the new pattern times the values, and the attention operation does not run in this layer.
/// - `mlp.hook_expert_weights`: of a layer with experts, in place of the neurons.
/// - `hook_resid_mid` is missing where attention and MLP read the same stream.
class Decoder : public hooks::HookedModel {
 public:
  /// @param source  asked for each layer in turn; null: the layers are in `weights`
  /// @throws InternalError    weights that do not fit the configuration
  /// @throws InvalidArgument  as rope_frequencies
  Decoder(DecoderConfig config, DecoderWeights weights, std::unique_ptr<LayerSource> source = nullptr);
  ~Decoder() override;

  hooks::Stream forward(const hooks::Tokens& tokens, const hooks::ForwardOptions& options,
                        const hooks::Hooks& hooks) override;
  /// Every request through a layer before the next layer begins: weights that come from a source are read once for all
  /// of them. The bits of each are those of forward().
  std::vector<hooks::Stream> forward_all(std::span<const hooks::ForwardRequest> requests) override;
  at::Tensor unembed(const at::Tensor& normalized) override;
  std::vector<hooks::SiteShape> sites() const override;
  const hooks::AttentionLayout& layout() const override { return layout_; }
  const DecoderConfig& config() const { return config_; }

 private:
  struct Pass;  // one request on its way through the layers

  void check_request(const hooks::ForwardRequest& request) const;
  void check_pattern_memory(const hooks::ForwardRequest& request) const;
  std::int64_t last_layer(const hooks::ForwardOptions& options) const;

  Pass begin(const hooks::ForwardRequest& request, hooks::AttentionOp& fused) const;
  hooks::Stream finish(const Pass& pass) const;
  at::Tensor normed(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const hooks::Site& site,
                    const Pass& pass) const;
  at::Tensor block(const LayerWeights& weights, std::int64_t layer, at::Tensor hidden, const Pass& pass) const;
  at::Tensor attention(const LayerWeights& weights, std::int64_t layer, const at::Tensor& input,
                       const Pass& pass) const;
  hooks::Qkv projected(const LayerWeights& weights, std::int64_t layer, const at::Tensor& input,
                       const Pass& pass) const;
  at::Tensor positioned(const at::Tensor& heads, const at::Tensor& norm, std::int64_t layer, std::string_view site,
                        const Pass& pass) const;
  at::Tensor weighted_values(const LayerWeights& weights, std::int64_t layer, const hooks::Qkv& qkv,
                             const Pass& pass) const;
  at::Tensor gated(const LayerWeights& weights, std::int64_t layer, const at::Tensor& z, const at::Tensor& input,
                   const Pass& pass) const;
  at::Tensor output_projection(const LayerWeights& weights, std::int64_t layer, const at::Tensor& z,
                               const Pass& pass) const;

  DecoderConfig config_;
  DecoderWeights weights_;
  std::unique_ptr<LayerSource> source_;
  hooks::AttentionLayout layout_;
};

}  // namespace gainlens::models
