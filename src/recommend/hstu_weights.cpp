#include "recommend/hstu_weights.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <cstddef>
#include <string>

namespace gainlens::recommend {

std::vector<WeightSlot> hstu_slots(const HstuConfig& config, HstuWeights& weights) {
  const std::int64_t width = config.width;
  const bft::Filter filter = config.armed_filter();
  SlotList slots;
  slots.drawn("item_embedding.weight", weights.item_embedding, {config.ids(), width});
  slots.drawn("position_embedding.weight", weights.position_embedding, {config.positions, width});
  if (config.embedding_norm) slots.norm("embedding_norm", weights.embedding_norm, width);
  slots.filter("", bft::initial_precision_slots(filter, width, config.ids(), /*counted=*/true), weights.precision);
  weights.layers.resize(static_cast<std::size_t>(config.layers));
  for (std::size_t i = 0; i < weights.layers.size(); ++i) {
    HstuLayerWeights& layer = weights.layers[i];
    const std::string prefix = fmt::format("layers.{}.", i);
    if (config.attention_norm_weights) slots.norm(prefix + "attention_norm", layer.attention_norm, width);
    slots.drawn(prefix + "attention.uvqk.weight", layer.uvqk, {4 * width, width});
    slots.drawn(prefix + "attention.place_bias", layer.place_bias, {config.positions});
    if (config.time_bias) slots.drawn(prefix + "attention.time_bias", layer.time_bias, {hstu_time_buckets});
    if (config.attention_norm_weights) slots.norm(prefix + "attended_norm", layer.attended_norm, width);
    if (filter.has_output_projection()) slots.linear(prefix + "attention.output", layer.output, width, width);
    if (config.has_mlp()) {
      slots.norm(prefix + "mlp_norm", layer.mlp_norm, width);
      slots.linear(prefix + "mlp.up", layer.up, config.inner_width, width);
      slots.linear(prefix + "mlp.down", layer.down, width, config.inner_width);
    }
    slots.filter(prefix + "filter.", bft::filter_slots(filter, width, config.heads, width, /*predicts=*/true),
                 layer.filter);
  }
  if (config.output == HstuOutput::norm) slots.norm("final_norm", weights.final_norm, width);
  return slots.take();
}

HstuWeights initial_hstu_weights(const HstuConfig& config, std::uint64_t seed) {
  HstuWeights weights;
  set_initial(hstu_slots(config, weights), seed, weights.item_embedding, weights.position_embedding,
              config.embedding_deviation);
  const at::NoGradGuard no_gradients;
  for (HstuLayerWeights& layer : weights.layers) {
    if (layer.output.weight.defined()) layer.output.weight.mul_(config.projection_deviation / initial_deviation);
  }
  return weights;
}

HstuWeights stored_hstu_weights(const HstuConfig& config, const WeightSource& source) {
  HstuWeights weights;
  read_stored(weights, hstu_slots(config, weights), source);
  return weights;
}

}  // namespace gainlens::recommend
