#pragma once

#include "bft/feedforward_jacobian.h"
#include "recommend/backbone.h"
#include "recommend/layer_parts.h"
#include "recommend/model_shape.h"
#include "training/filter_training.h"

#include <ATen/core/Tensor.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace gainlens::recommend {

/// What each layer of such a model has, whatever its attention is.
struct LayerHandle {
  const LinearWeights *up, *down;
  bft::FilterWeights* filter;
};

/// @param layers  have the members up, down and filter
template <typename Layers>
std::vector<LayerHandle> handles_of(Layers& layers) {
  std::vector<LayerHandle> handles;
  handles.reserve(layers.size());
  for (auto& layer : layers) handles.push_back({&layer.up, &layer.down, &layer.filter});
  return handles;
}

/// @param config   has the members that embedding_knobs() reads (model_shape.h), and width
/// @param weights  has item_embedding, position_embedding, embedding_norm and precision
template <typename Config, typename Weights>
InputPart input_part_of(const Config& config, const Weights& weights) {
  const bool scaled = config.embedding_factor == EmbeddingFactor::sqrt_width;
  return {weights.item_embedding,
          weights.position_embedding,
          scaled ? std::sqrt(static_cast<double>(config.width)) : 1,
          config.embedding_norm ? &weights.embedding_norm : nullptr,
          config.norm_epsilon,
          weights.precision};
}

/// @param config  has heads, head_dim(), positions and layers
template <typename Config>
hooks::AttentionLayout layout_of(const Config& config) {
  hooks::AttentionLayout layout;
  layout.heads = layout.kv_heads = config.heads;
  layout.head_dim = config.head_dim();
  layout.max_positions = config.positions;
  layout.window.assign(static_cast<std::size_t>(config.layers), 0);
  return layout;
}

/// The shapes of the sites of such a model.
struct SiteShapes {
  std::vector<std::string> stream, heads, neurons, pattern, head_numbers;
};

/// @param config  has width, heads, head_dim() and inner_width
template <typename Config>
SiteShapes site_shapes_of(const Config& config) {
  const std::string heads = std::to_string(config.heads);
  return {.stream = {"batch", "position", std::to_string(config.width)},
          .heads = {"batch", "position", heads, std::to_string(config.head_dim())},
          .neurons = {"batch", "position", std::to_string(config.inner_width)},
          .pattern = {"batch", heads, "position", "position"},
          .head_numbers = {"batch", "position", heads}};
}

/// The ways through a model whose layers have an MLP and may have a filter: packed histories for training and ranking,
/// and batches of sequences of one length for hooks. What a layer does is the model's own.
class PackedBackbone : public Backbone, public training::FilterHost {
 public:
  at::Tensor run(const PackedSequences& sequences, const RunOptions& options = {},
                 const hooks::Hooks& hooks = {}) const override;
  LastStates last_states(const PackedSequences& sequences) const override;
  void weights_changed() override { refresh_jacobian(); }
  training::FilterHost* filter() override { return this; }
  const hooks::AttentionLayout& layout() const override { return layout_; }

  // Of training::FilterHost.
  const bft::Filter& armed_filter() const override { return filter_; }
  std::int64_t head_dim() const override { return layout_.head_dim; }
  std::vector<bft::FilterWeights*> layer_filter_weights() override;
  std::vector<models::NamedTensor> filter_constants() override;
  void refresh_jacobian() override;
  std::vector<double> jacobian_energy() const override { return kept_energy(factors_); }

 protected:
  PackedBackbone(const bft::Filter& filter, hooks::AttentionLayout layout);
  /// @param name   of the backbone, for messages
  /// @param given  layers of weights
  /// @throws InternalError  another number of layers; a weight that is undefined or has another shape
  void check_slots(const char* name, std::size_t given);

  virtual InputPart input_part() const = 0;
  virtual std::vector<LayerHandle> layer_handles() = 0;
  /// A layer: changes the stream.
  virtual void block(std::int64_t layer, LayerStream& stream, const PackedPass& pass) const = 0;
  /// What the head is applied to.
  virtual at::Tensor finished(const at::Tensor& hidden, const PackedPass& pass) const = 0;
  /// Whether the last layer can compute the last position of each sequence alone.
  virtual bool serves_last_rows(const LayerStream&) const { return true; }

  /// @throws InvalidArgument  as check_id_request()
  void check_ids(const hooks::Tokens& tokens, const hooks::ForwardOptions& options, const hooks::Hooks& hooks) const;
  /// forward() after all checks.
  hooks::Stream forward_ids(const hooks::Tokens& tokens, const hooks::ForwardOptions& options,
                            const hooks::Hooks& hooks);
  std::int64_t layers() const { return std::ssize(layout_.window); }
  /// The factors of a layer's Jacobian in the low-rank form; null for others.
  const bft::JacobianFactors* factors_of(std::int64_t layer) const {
    return factors_.empty() ? nullptr : &factors_.at(static_cast<std::size_t>(layer));
  }

  bft::Filter filter_;  // that of the configuration

 private:
  LayerStream run_layers(LayerStream stream, std::int64_t layers, const PackedPass& pass) const;

  hooks::AttentionLayout layout_;
  std::vector<bft::JacobianFactors> factors_;  // [layer] of the low-rank form; empty for others
};

}  // namespace gainlens::recommend
