#include "sweep/measured_model.h"

#include "core/check.h"

#include <algorithm>
#include <utility>

namespace gainlens::sweep {

runfile::MeasuredModel measured_model(std::string family, const hooks::AttentionLayout& layout,
                                      std::vector<std::int64_t> layers) {
  runfile::MeasuredModel model;
  // Both structs are unpacked completely, so that a new member in either does not compile until it is handled here.
  const auto& [heads, kv_heads, layer_kv_heads, head_dim, max_positions, window, gated, sink_logits, sink_layers,
               filtered, delta, convolution] = layout;
  auto& [model_family, model_layers, model_heads, model_kv_heads, model_layer_kv_heads, model_head_dim,
         model_max_positions, attention, model_gated, model_sink_logits, model_filtered] = model;
  for (const std::int64_t layer : layers)
    ASSERT(layout.attends(layer), "layer {} has no attention weights, and is to be measured", layer);
  for (const std::int64_t layer : layers) attention.push_back(layout.kind(layer));
  for (const std::int64_t layer : layers) model_layer_kv_heads.push_back(layout.kv_heads_of(layer));
  if (std::ranges::count(model_layer_kv_heads, kv_heads) == std::ssize(layers)) model_layer_kv_heads.clear();
  model_sink_logits = std::ranges::any_of(layers, [&](std::int64_t layer) { return layout.has_sink_logits(layer); });
  model_family = std::move(family);
  model_layers = std::move(layers);
  model_heads = heads;
  model_kv_heads = kv_heads;
  model_head_dim = head_dim;
  model_max_positions = max_positions;
  model_gated = gated;
  model_filtered = filtered;
  return model;
}

}  // namespace gainlens::sweep
