#pragma once

#include "kernels/gradient/pointwise_attention.h"
#include "recommend/hstu_config.h"
#include "recommend/hstu_weights.h"
#include "recommend/packed_backbone.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace gainlens::recommend {

/// The sites of such a model.
std::vector<hooks::SiteShape> hstu_sites(const HstuConfig& config);

/// HSTU (Zhai et al., 2024) and its arms: a gate, values, queries and keys by one matrix with SiLU; weights
/// SiLU(score) / n without a softmax; what attention gives is normed and gated. The model computes in the type and on
/// the device of its weights. docs/recommend-training.md, "HSTU", has the formulas.
///
/// run() takes packed histories and has gradients. forward() takes a batch of sequences of one length without times:
/// for models without a time bias.
///
/// Sites have the names of TransformerLens where it has them. `attn.hook_u` is the gate, `attn.hook_z` sum w v,
/// `attn.hook_gated` what the gain and W_O act on, `attn.hook_weight_balance` (which cannot be replaced) the sum of the
/// weights over that of their sizes. `attn.hook_pattern` exists in forward() alone.
class Hstu final : public PackedBackbone {
 public:
  /// @throws InternalError  weights that do not fit the configuration
  Hstu(const HstuConfig& config, HstuWeights weights);

  const BackboneKind& kind() const override;
  HistoryView view() const override { return view_of(config_); }
  std::int64_t items() const override { return config_.items; }
  at::Tensor run(const PackedSequences& sequences, const RunOptions& options = {},
                 const hooks::Hooks& hooks = {}) const override;
  at::Tensor head() const override;
  std::vector<WeightSlot> slots() override { return hstu_slots(config_, weights_); }
  OrderedJson document() const override { return to_json(config_); }
  std::vector<ModelFact> facts() const override;

  bft::InitialPrecisionWeights& initial_precision_weights() override { return weights_.precision; }
  bool has_signed_weights() const override { return true; }

  /// @param tokens  ids from 1, [batch, position]: sequences of one length, without padding
  /// @throws InvalidArgument  also: the model reads times; another attention operation
  hooks::Stream forward(const hooks::Tokens& tokens, const hooks::ForwardOptions& options,
                        const hooks::Hooks& hooks) override;
  /// [.., id]. The logit of 0, which is no item, is -infinity.
  at::Tensor unembed(const at::Tensor& normalized) override;
  at::Tensor target_losses(const at::Tensor& normalized, const at::Tensor& targets) override;
  std::vector<hooks::SiteShape> sites() const override { return hstu_sites(config_); }

  const HstuConfig& config() const { return config_; }
  const HstuWeights& weights() const { return weights_; }

 private:
  InputPart input_part() const override;
  std::vector<LayerHandle> layer_handles() override { return handles_of(weights_.layers); }
  void block(std::int64_t layer, LayerStream& stream, const PackedPass& pass) const override;
  /// What is added to the stream. Updates the precision of the stream.
  at::Tensor attention(std::int64_t layer, const at::Tensor& input, LayerStream& stream, const PackedPass& pass) const;
  /// sum w v of each head and, if a precision moves, its variance.
  kernels::PointwiseMoments attended(std::int64_t layer, const hooks::Qkv& heads,
                                     const kernels::PointwiseAttentionOptions& options, bool moments,
                                     const PackedPass& pass) const;
  kernels::PointwiseAttentionOptions attention_options(std::int64_t layer, const PackedPass& pass) const;
  at::Tensor finished(const at::Tensor& hidden, const PackedPass& pass) const override;
  const HstuLayerWeights& layer_weights(std::int64_t layer) const {
    return weights_.layers[static_cast<std::size_t>(layer)];
  }

  HstuConfig config_;
  HstuWeights weights_;
};

}  // namespace gainlens::recommend
