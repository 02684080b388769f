#pragma once

#include "bft/feedforward_jacobian.h"
#include "recommend/backbone.h"
#include "recommend/packed_sequences.h"
#include "recommend/sasrec_config.h"
#include "recommend/sasrec_weights.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace gainlens::recommend {

/// What the filter did in a pass: one entry for each layer, [position, width], without gradients. Empty while the
/// filter is not in force.
struct FilterTrace {
  bool whole = true;                              ///< else only `stretch_sum` is taken up, at less cost
  std::vector<at::Tensor> precision;              ///< lambda of the stream that enters the layer
  std::vector<at::Tensor> observation_precision;  ///< lambda_obs
  std::vector<at::Tensor> gain;                   ///< K, before it is blended with 1
  std::vector<at::Tensor> estimate;               ///< e, with dropout
  std::vector<at::Tensor> stretch_sum;            ///< [width] sum of max((1 + J)^2, 0.01); not of the last layer
};

/// Packs sequences of items as such a model sees them.
PackedSequences pack(std::span<const std::span<const data::ItemId>> sequences, const SasRecConfig& config,
                     at::Device device = at::kCPU);

/// The sites of such a model.
std::vector<hooks::SiteShape> sasrec_sites(const SasRecConfig& config);

/// SASRec, and its arms. It computes in the type and on the device of its weights.
///
/// Two ways in: `hidden` takes packed histories and has gradients, for training and ranking; `forward` is the interface
/// of all models here, with hooks and an attention operation. Both run the same layers.
///
/// Sites have the names of TransformerLens, as in models::Decoder. `ln1.hook_normalized` and `ln2.hook_normalized` are
/// before the norm's weight and bias; with norms after the sums, they are those of the sums. The Bayesian filter adds
/// `hook_precision` (lambda before the layer), `attn.hook_observation_precision` and `attn.hook_gain`, which the arms
/// with another gain have too; `attn.hook_z` is the estimate e. Arms whose scores have biases have no
/// `attn.hook_pattern`.
class SasRec : public Backbone {
 public:
  /// @throws InternalError  weights that do not fit the configuration
  SasRec(const SasRecConfig& config, SasRecWeights weights);

  /// The stream after the last norm.
  /// @param trace  takes up what the filter did. With it, the Jacobian is that of this pass; without, it is the running
  ///     mean that the configuration may ask for.
  /// @returns [position, width]
  at::Tensor hidden(const PackedSequences& sequences, const TrainingNoise& noise = {},
                    FilterTrace* trace = nullptr) const;
  /// lambda before the first layer of items, within the bounds of the options. Only arms with `precision_bias`.
  /// @param items  int64 [position], ids from 1
  /// @returns [position]
  at::Tensor initial_precision(const at::Tensor& items) const;
  /// Takes the low-rank factors of the Jacobians from the weights as they are now, as the constructor does. Does
  /// nothing if the configuration has another form.
  void refresh_jacobian();
  /// [layer] of the low-rank form; empty for others.
  const std::vector<bft::JacobianFactors>& jacobian_factors() const { return factors_; }
  /// Mean cross-entropy over all items of the catalogue, with a gradient.
  /// @param hidden   [row, width]
  /// @param targets  int64 [row]: ids from 1
  at::Tensor mean_loss(const at::Tensor& hidden, const at::Tensor& targets) const override;
  /// Embeddings of the items 1 to `items`, [items, width]: the output head. Row i belongs to item i + 1.
  at::Tensor head() const override;

  const BackboneKind& kind() const override;
  HistoryView view() const override { return view_of(config_); }
  std::int64_t items() const override { return config_.items; }
  at::Tensor run(const PackedSequences& sequences, const RunOptions& options = {},
                 const hooks::Hooks& hooks = {}) const override;
  std::vector<WeightSlot> slots() override { return sasrec_slots(config_, weights_); }
  OrderedJson document() const override { return to_json(config_); }
  void weights_changed() override { refresh_jacobian(); }
  std::unique_ptr<FilterTraining> train_filter(const data::LeaveOneOut& split, const std::vector<std::int64_t>& users,
                                               std::int64_t steps_per_epoch) override;
  std::vector<ModelFact> facts() const override;

  /// @param tokens  ids from 1, [batch, position]: sequences of one length, without padding
  hooks::Stream forward(const hooks::Tokens& tokens, const hooks::ForwardOptions& options,
                        const hooks::Hooks& hooks) override;
  /// [.., items + 1]. The logit of id 0, which is no item, is -infinity.
  at::Tensor unembed(const at::Tensor& normalized) override;
  at::Tensor target_losses(const at::Tensor& normalized, const at::Tensor& targets) override;
  std::vector<hooks::SiteShape> sites() const override;
  const hooks::AttentionLayout& layout() const override { return layout_; }

  const SasRecConfig& config() const { return config_; }
  const SasRecWeights& weights() const { return weights_; }

 private:
  struct Pass;    // what differs between the two ways in
  struct Stream;  // what goes from layer to layer
  Stream run_layers(Stream stream, std::int64_t layers, const Pass& pass) const;
  void block(std::int64_t layer, Stream& stream, const Pass& pass) const;
  /// What is added to the stream, before dropout. Updates the precision of the stream.
  at::Tensor attention(std::int64_t layer, const at::Tensor& input, Stream& stream, const Pass& pass) const;
  /// factor e of a layer without precisions.
  at::Tensor scaled_attention(std::int64_t layer, const at::Tensor& input, const hooks::Qkv& heads,
                              const Stream& stream, const Pass& pass) const;
  at::Tensor plain_attention(std::int64_t layer, const hooks::Qkv& heads, const Stream& stream, const Pass& pass) const;
  at::Tensor filtered_attention(std::int64_t layer, const hooks::Qkv& heads, Stream& stream, const Pass& pass) const;
  /// The precision of the stream after the MLP.
  /// @param slopes  [row, neuron] of the activation; undefined if the configuration has no Jacobian or takes its mean
  at::Tensor predicted_precision(std::int64_t layer, const Stream& stream, const at::Tensor& slopes,
                                 const Pass& pass) const;
  at::Tensor jacobian(std::int64_t layer, const Stream& stream, const at::Tensor& slopes) const;
  /// Whether the precision after a layer needs the slopes of its activation.
  bool needs_slopes(std::int64_t layer, const Stream& stream, const Pass& pass) const;
  Stream first_stream(const at::Tensor& items, const at::Tensor& places, const Pass& pass) const;
  /// Biases of the scores other than those of a moving precision.
  kernels::PackedAttentionOptions packed_options(std::int64_t layer, const Pass& pass) const;
  /// Whether the biases and the gain act: no while the filter warms up.
  double strength() const;
  at::Tensor normed(const at::Tensor& x, const NormWeights& weights, const hooks::Site& site, const Pass& pass) const;
  void check_request(const hooks::Tokens& tokens, const hooks::ForwardOptions& options,
                     const hooks::Hooks& hooks) const;

  SasRecConfig config_;
  SasRecWeights weights_;
  hooks::AttentionLayout layout_;
  std::vector<bft::JacobianFactors> factors_;
};

}  // namespace gainlens::recommend
