#pragma once

#include "hooks/hooked_model.h"
#include "recommend/packed_sequences.h"
#include "recommend/sasrec_config.h"
#include "recommend/sasrec_weights.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace gainlens::recommend {

/// The random part of a training step. All masks follow from these numbers (kernels/gradient/dropout.h).
struct TrainingNoise {
  double hidden_rate = 0;      ///< dropout of the embedding, and of what attention and MLP add to the stream
  double attention_rate = 0;   ///< dropout of the attention weights
  std::uint64_t key = 0;       ///< another one for each step
  std::int64_t first_row = 0;  ///< positions of the step's batch before the first of these, if it is done in parts
};

/// The sites of such a model.
std::vector<hooks::SiteShape> sasrec_sites(const SasRecConfig& config);

/// SASRec. It computes in the type and on the device of its weights.
///
/// Two ways in: `hidden` takes packed histories and has gradients, for training and ranking; `forward` is the interface
/// of all models here, with hooks and an attention operation. Both run the same layers.
///
/// Sites have the names of TransformerLens, as in models::Decoder. `ln1.hook_normalized` and `ln2.hook_normalized` are
/// before the norm's weight and bias; with norms after the sums, they are those of the sums.
class SasRec : public hooks::HookedModel {
 public:
  /// @throws InternalError  weights that do not fit the configuration
  SasRec(SasRecConfig config, SasRecWeights weights);

  /// The stream after the last norm.
  /// @returns [position, width]
  at::Tensor hidden(const PackedSequences& sequences, const TrainingNoise& noise = {}) const;
  /// Mean cross-entropy over all items of the catalogue, with a gradient.
  /// @param hidden   [row, width]
  /// @param targets  int64 [row]: ids from 1
  at::Tensor mean_loss(const at::Tensor& hidden, const at::Tensor& targets) const;
  /// Embeddings of the items 1 to `items`, [items, width]: the output head. Row i belongs to item i + 1.
  at::Tensor head() const;

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
  struct Pass;  // what differs between the two ways in
  at::Tensor embedded(const at::Tensor& items, const at::Tensor& places, const Pass& pass) const;
  at::Tensor run_layers(at::Tensor hidden, std::int64_t layers, const Pass& pass) const;
  at::Tensor block(std::int64_t layer, const at::Tensor& hidden, const Pass& pass) const;
  at::Tensor attention(std::int64_t layer, const at::Tensor& input, const Pass& pass) const;
  at::Tensor mlp(std::int64_t layer, const at::Tensor& input, const Pass& pass) const;
  at::Tensor normed(const at::Tensor& x, const NormWeights& weights, const hooks::Site& site, const Pass& pass) const;
  void check_request(const hooks::Tokens& tokens, const hooks::ForwardOptions& options,
                     const hooks::Hooks& hooks) const;

  SasRecConfig config_;
  SasRecWeights weights_;
  hooks::AttentionLayout layout_;
};

}  // namespace gainlens::recommend
