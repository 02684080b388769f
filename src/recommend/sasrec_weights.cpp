#include "recommend/sasrec_weights.h"

#include <fmt/format.h>

namespace gainlens::recommend {
std::vector<SasRecSlot> sasrec_slots(const SasRecConfig& config, SasRecWeights& weights) {
  const std::int64_t width = config.width;
  SlotList slots;
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
    slots.filter(prefix + "filter.", bft::filter_slots(filter, width, config.heads, width, /*predicts=*/true),
                 layer.filter);
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
  set_initial(sasrec_slots(config, weights), seed, weights.item_embedding, weights.position_embedding,
              config.embedding_deviation);
  return weights;
}

SasRecWeights stored_sasrec_weights(const SasRecConfig& config, const WeightSource& source) {
  SasRecWeights weights;
  read_stored(weights, sasrec_slots(config, weights), source);
  return weights;
}

}  // namespace gainlens::recommend
