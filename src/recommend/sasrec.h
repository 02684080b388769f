#pragma once

#include "bft/packed_observation.h"
#include "recommend/packed_backbone.h"
#include "recommend/sasrec_config.h"
#include "recommend/sasrec_weights.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace gainlens::recommend {

/// Packs sequences of items as such a model sees them.
PackedSequences pack(std::span<const std::span<const data::ItemId>> sequences, const SasRecConfig& config,
                     at::Device device = at::kCPU);

/// The sites of such a model.
std::vector<hooks::SiteShape> sasrec_sites(const SasRecConfig& config);

/// SASRec and BERT4Rec, and their arms. The model computes in the type and on the device of its weights.
///
/// Two ways in lead through the same layers: run() takes packed histories and has gradients, for training and ranking;
/// forward() takes a batch of sequences of one length, and another attention operation.
///
/// Sites have the names of TransformerLens, as in models::Decoder. `ln1.hook_normalized` and `ln2.hook_normalized` are
/// before the norm's weight and bias; with norms after the sums, they are those of the sums. The Bayesian filter adds
/// `hook_precision` (lambda before the layer), `attn.hook_observation_precision`, `mlp.hook_stretch` and
/// `attn.hook_gain`, which the arms with another gain have too; `attn.hook_z` is the estimate e. `attn.hook_pattern`
/// exists in forward() alone, for arms whose weights are the same in all dimensions.
class SasRec final : public PackedBackbone {
 public:
  /// @throws InternalError  weights that do not fit the configuration
  SasRec(const SasRecConfig& config, SasRecWeights weights);

  /// Embeddings of the items 1 to `items`, [items, width]: the output head. Row i belongs to item i + 1.
  at::Tensor head() const override;
  at::Tensor head_bias() const override { return weights_.head_bias; }

  const BackboneKind& kind() const override;
  HistoryView view() const override { return view_of(config_); }
  std::int64_t items() const override { return config_.items; }
  std::vector<WeightSlot> slots() override { return sasrec_slots(config_, weights_); }
  OrderedJson document() const override { return to_json(config_); }

  bft::InitialPrecisionWeights& initial_precision_weights() override { return weights_.precision; }
  std::vector<ModelFact> facts() const override;

  /// @param tokens  ids from 1, for BERT4Rec up to that of MASK, [batch, position]: sequences of one length, without
  ///     padding
  hooks::Stream forward(const hooks::Tokens& tokens, const hooks::ForwardOptions& options,
                        const hooks::Hooks& hooks) override;
  /// [.., id]. The logits of 0 and of MASK, which are no items, are -infinity.
  at::Tensor unembed(const at::Tensor& normalized) override;
  at::Tensor target_losses(const at::Tensor& normalized, const at::Tensor& targets) override;
  std::vector<hooks::SiteShape> sites() const override;

  const SasRecConfig& config() const { return config_; }
  const SasRecWeights& weights() const { return weights_; }

 private:
  using Pass = PackedPass;     // what differs between the two ways in
  using Stream = LayerStream;  // what goes from layer to layer
  void block(std::int64_t layer, Stream& stream, const Pass& pass) const override;
  /// What is added to the stream, before dropout. Updates the precision of the stream.
  /// @param queries, keys  what they are made of, [row, width]; values are made of `keys`
  at::Tensor attention(std::int64_t layer, const at::Tensor& queries, const at::Tensor& keys, Stream& stream,
                       const Pass& pass) const;
  /// factor e, [row, width].
  at::Tensor filtered_attention(std::int64_t layer, const at::Tensor& input, const hooks::Qkv& heads, Stream& stream,
                                const Pass& pass) const;
  /// The observation by an estimator that needs all weights at once, or weights of each dimension.
  bft::HeadObservation observed_by_weights(std::int64_t layer, const hooks::Qkv& heads, const Stream& stream,
                                           kernels::PackedAttentionOptions options, const Pass& pass) const;
  /// [batch, head, query, key], after the hooks.
  at::Tensor shown_pattern(const hooks::Site& site, const hooks::Qkv& heads, const bft::ScoreBiases& biases,
                           const Pass& pass) const;
  /// [batch, head, position, head_dim] of rows [row, head, head_dim].
  hooks::Qkv batched(const hooks::Qkv& heads, const Pass& pass) const;
  InputPart input_part() const override;
  std::vector<LayerHandle> layer_handles() override { return handles_of(weights_.layers); }
  at::Tensor finished(const at::Tensor& hidden, const Pass& pass) const override;
  /// Weights of each dimension, and estimators that need all weights, are computed for whole sequences.
  bool serves_last_rows(const LayerStream& stream) const override;

  SasRecConfig config_;
  SasRecWeights weights_;
};

}  // namespace gainlens::recommend
