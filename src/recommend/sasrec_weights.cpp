#include "recommend/sasrec_weights.h"

#include <ATen/ATen.h>

#include <cmath>

namespace gainlens::recommend {
namespace {

class Slots {
 public:
  void drawn(std::string name, at::Tensor& tensor, std::vector<std::int64_t> shape,
             WeightRole role = WeightRole::weight) {
    slots_.push_back({std::move(name), std::move(shape), &tensor, role, std::nullopt});
  }
  void add(std::string name, at::Tensor& tensor, std::vector<std::int64_t> shape, WeightRole role, double start) {
    slots_.push_back({std::move(name), std::move(shape), &tensor, role, start});
  }
  void norm(const std::string& name, NormWeights& norm, std::int64_t width) {
    add(name + ".weight", norm.weight, {width}, WeightRole::weight, 1);
    add(name + ".bias", norm.bias, {width}, WeightRole::weight, 0);
  }
  void linear(const std::string& name, LinearWeights& linear, std::int64_t out, std::int64_t in) {
    drawn(name + ".weight", linear.weight, {out, in});
    add(name + ".bias", linear.bias, {out}, WeightRole::weight, 0);
  }
  template <typename Weights>
  void filter(const std::string& prefix, const std::vector<bft::FilterSlot>& slots, Weights& weights) {
    const auto tensors = bft::tensors_by_name(weights);
    for (const bft::FilterSlot& slot : slots)
      slots_.push_back({prefix + std::string(slot.name), slot.shape, tensors.at(slot.name), slot.role, slot.start});
  }
  std::vector<SasRecSlot> take() { return std::move(slots_); }

 private:
  std::vector<SasRecSlot> slots_;
};

}  // namespace

std::vector<SasRecSlot> sasrec_slots(const SasRecConfig& config, SasRecWeights& weights) {
  const std::int64_t width = config.width;
  Slots slots;
  slots.drawn("item_embedding.weight", weights.item_embedding, {config.ids(), width});
  slots.drawn("position_embedding.weight", weights.position_embedding, {config.positions, width});
  if (config.embedding_norm) slots.norm("embedding_norm", weights.embedding_norm, width);
  const bft::Filter filter = config.armed_filter();
  slots.filter("", bft::initial_precision_slots(filter, width, config.ids(), /*counted=*/true), weights.precision);
  weights.layers.resize(static_cast<std::size_t>(config.layers));
  for (std::size_t i = 0; i < weights.layers.size(); ++i) {
    SasRecLayerWeights& layer = weights.layers[i];
    const std::string prefix = fmt::format("layers.{}.", i);
    slots.norm(prefix + "attention_norm", layer.attention_norm, width);
    slots.linear(prefix + "attention.query", layer.query, width, width);
    slots.linear(prefix + "attention.key", layer.key, width, width);
    slots.linear(prefix + "attention.value", layer.value, width, width);
    if (filter.has_output_projection()) slots.linear(prefix + "attention.output", layer.output, width, width);
    slots.norm(prefix + "mlp_norm", layer.mlp_norm, width);
    slots.linear(prefix + "mlp.up", layer.up, config.inner_width, width);
    slots.linear(prefix + "mlp.down", layer.down, width, config.inner_width);
    // Every layer has what predicts, though no layer reads the precision after the last one.
    slots.filter(prefix + "filter.", bft::filter_slots(filter, width, config.heads, /*predicts=*/true), layer.filter);
  }
  if (config.final_norm()) slots.norm("final_norm", weights.final_norm, width);
  if (config.bidirectional) {
    slots.linear("head.dense", weights.head_dense, width, width);
    slots.norm("head.norm", weights.head_norm, width);
    slots.add("head.bias", weights.head_bias, {config.items}, WeightRole::weight, 0);
  }
  return slots.take();
}

SasRecWeights initial_sasrec_weights(const SasRecConfig& config, std::uint64_t seed) {
  SasRecWeights weights;
  for (const SasRecSlot& slot : sasrec_slots(config, weights)) {
    at::Tensor values = initial_values(slot, seed);
    const bool embeds = slot.tensor == &weights.item_embedding || slot.tensor == &weights.position_embedding;
    if (embeds) values.mul_(config.embedding_deviation / initial_deviation);
    if (slot.tensor == &weights.item_embedding) values[0].zero_();
    *slot.tensor = values.set_requires_grad(slot.role != WeightRole::constant);
  }
  return weights;
}

}  // namespace gainlens::recommend
