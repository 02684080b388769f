#include "models/initial_weights.h"

#include "models/family.h"
#include "models/tensor_slots.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <cmath>

namespace gainlens::models {
namespace {

constexpr double embedding_deviation = 0.02;

at::Tensor leaf(at::Tensor tensor) {
  return tensor.set_requires_grad(true);
}

/// Fills the weights slot by slot, in the order of the checkpoint.
class Initialiser {
 public:
  Initialiser(const DecoderConfig& config, std::uint64_t seed)
      : config_(config), generator_(at::make_generator<at::CPUGeneratorImpl>(seed)) {}

  at::Tensor normal(std::vector<std::int64_t> shape, double deviation) {
    return leaf(at::empty(shape, at::kFloat).normal_(0, deviation, generator_));
  }

  at::Tensor fan_in(std::vector<std::int64_t> shape, double factor = 1) {
    return normal(shape, factor / std::sqrt(static_cast<double>(shape.back())));
  }

  /// Of a slot whose tensor is one of the layer's.
  void fill(const TensorSlot& slot, bool embeds, bool writes_stream) {
    if (slot.shape.size() == 1) {
      const bool bias = slot.name.ends_with(".bias");
      *slot.target = leaf(bias ? at::zeros(rows_of_queries(slot), at::kFloat) : at::ones(slot.shape, at::kFloat));
      if (slot.gate_target != nullptr) *slot.gate_target = leaf(at::zeros({slot.shape[0] - query_rows()}, at::kFloat));
      return;
    }
    if (embeds) {
      *slot.target = normal(slot.shape, embedding_deviation);
      return;
    }
    *slot.target = fan_in(rows_of_queries(slot), writes_stream ? 1 / std::sqrt(2.0 * static_cast<double>(config_.layers)) : 1);
    if (slot.gate_target != nullptr) *slot.gate_target = fan_in({slot.shape[0] - query_rows(), slot.shape[1]});
  }

 private:
  std::int64_t query_rows() const { return config_.heads * config_.head_dim; }

  /// The shape without the rows of a gate.
  std::vector<std::int64_t> rows_of_queries(const TensorSlot& slot) const {
    std::vector<std::int64_t> shape = slot.shape;
    if (slot.gate_target != nullptr) shape[0] = query_rows();
    return shape;
  }

  const DecoderConfig& config_;
  at::Generator generator_;
};

}  // namespace

DecoderWeights initial_weights(const DecoderConfig& config, std::uint64_t seed) {
  DecoderWeights weights;
  Initialiser initialiser(config, seed);
  const auto slots = tensor_slots(config, family_named(config.family, "model").tensors, weights);
  for (const TensorSlot& slot : slots) {
    const bool embeds = slot.target == &weights.embedding;
    bool writes_stream = false;
    for (const LayerWeights& layer : weights.layers) writes_stream |= slot.target == &layer.output || slot.target == &layer.mlp_down;
    initialiser.fill(slot, embeds, writes_stream);
  }
  if (config.tied_head) weights.head = weights.embedding;
  return weights;
}

std::vector<NamedTensor> decoder_parameters(const DecoderConfig& config, DecoderWeights& weights) {
  std::vector<NamedTensor> parameters;
  for (const TensorSlot& slot : tensor_slots(config, family_named(config.family, "model").tensors, weights)) {
    parameters.push_back({slot.name, *slot.target});
    if (slot.gate_target != nullptr) parameters.push_back({slot.name + ".gate", *slot.gate_target});
  }
  return parameters;
}

}  // namespace gainlens::models
