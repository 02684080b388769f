#pragma once

#include "bft/feedforward_jacobian.h"
#include "kernels/gradient/pointwise_attention.h"
#include "recommend/backbone.h"
#include "recommend/hstu_config.h"
#include "recommend/hstu_weights.h"
#include "recommend/layer_parts.h"
#include "training/filter_training.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace gainlens::recommend {

/// The sites of such a model.
std::vector<hooks::SiteShape> hstu_sites(const HstuConfig& config);

/// HSTU (Zhai et al., 2024) and its arms: a gate, values, queries and keys by one matrix with SiLU; weights
/// SiLU(score) / n without a softmax; what attention gives is normed and gated. The model computes in the type and on
/// the device of its weights. docs/recommend.md, "HSTU", has the formulas.
///
/// run() takes packed histories and has gradients. forward() takes a batch of sequences of one length without times:
/// for models without a time bias.
///
/// Sites have the names of TransformerLens where it has them. `attn.hook_u` is the gate, `attn.hook_z` sum w v,
/// `attn.hook_gated` what the gain and W_O act on, `attn.hook_weight_balance` (which cannot be replaced) the sum of the
/// weights over that of their sizes. `attn.hook_pattern` exists in forward() alone.
class Hstu : public Backbone, public training::FilterHost {
 public:
  /// @throws InternalError  weights that do not fit the configuration
  Hstu(const HstuConfig& config, HstuWeights weights);

  const BackboneKind& kind() const override;
  HistoryView view() const override { return view_of(config_); }
  std::int64_t items() const override { return config_.items; }
  at::Tensor run(const PackedSequences& sequences, const RunOptions& options = {},
                 const hooks::Hooks& hooks = {}) const override;
  LastStates last_states(const PackedSequences& sequences) const override;
  at::Tensor head() const override;
  std::vector<WeightSlot> slots() override { return hstu_slots(config_, weights_); }
  OrderedJson document() const override { return to_json(config_); }
  void weights_changed() override { refresh_jacobian(); }
  training::FilterHost* filter() override { return this; }
  std::vector<ModelFact> facts() const override;

  // Of training::FilterHost.
  const bft::Filter& armed_filter() const override { return filter_; }
  std::int64_t head_dim() const override { return config_.head_dim(); }
  bft::InitialPrecisionWeights& initial_precision_weights() override { return weights_.precision; }
  std::vector<bft::FilterWeights*> layer_filter_weights() override;
  std::vector<models::NamedTensor> filter_constants() override;
  void refresh_jacobian() override;
  std::vector<double> jacobian_energy() const override;
  bool has_signed_weights() const override { return true; }

  /// @param tokens  ids from 1, [batch, position]: sequences of one length, without padding
  /// @throws InvalidArgument  also: the model reads times; another attention operation
  hooks::Stream forward(const hooks::Tokens& tokens, const hooks::ForwardOptions& options,
                        const hooks::Hooks& hooks) override;
  /// [.., id]. The logit of 0, which is no item, is -infinity.
  at::Tensor unembed(const at::Tensor& normalized) override;
  at::Tensor target_losses(const at::Tensor& normalized, const at::Tensor& targets) override;
  std::vector<hooks::SiteShape> sites() const override { return hstu_sites(config_); }
  const hooks::AttentionLayout& layout() const override { return layout_; }

  const HstuConfig& config() const { return config_; }
  const HstuWeights& weights() const { return weights_; }

 private:
  InputPart input_part() const;
  LayerStream run_layers(LayerStream stream, std::int64_t layers, const PackedPass& pass) const;
  void block(std::int64_t layer, LayerStream& stream, const PackedPass& pass) const;
  /// What is added to the stream. Updates the precision of the stream.
  at::Tensor attention(std::int64_t layer, const at::Tensor& input, LayerStream& stream, const PackedPass& pass) const;
  /// sum w v of each head and, if a precision moves, its variance.
  kernels::PointwiseMoments attended(std::int64_t layer, const hooks::Qkv& heads,
                                     const kernels::PointwiseAttentionOptions& options, bool moments,
                                     const PackedPass& pass) const;
  kernels::PointwiseAttentionOptions attention_options(std::int64_t layer, const PackedPass& pass) const;
  at::Tensor finished(const at::Tensor& hidden, const PackedPass& pass) const;
  const HstuLayerWeights& layer_weights(std::int64_t layer) const {
    return weights_.layers[static_cast<std::size_t>(layer)];
  }

  HstuConfig config_;
  bft::Filter filter_;  // that of the configuration
  HstuWeights weights_;
  hooks::AttentionLayout layout_;
  std::vector<bft::JacobianFactors> factors_;  // [layer] of the low-rank form; empty for others
};

}  // namespace gainlens::recommend
