#include "models/decoder/attention_layout.h"

namespace gainlens::models {

hooks::AttentionLayout attention_layout(const DecoderConfig& config) {
  hooks::AttentionLayout layout;
  // A structured binding of all members: a new member of AttentionLayout does not compile until it gets its value here.
  auto& [heads, kv_heads, layer_kv_heads, head_dim, max_positions, window, gated, sink_logits, sink_layers, filtered,
         delta, convolution] = layout;
  heads = config.heads;
  kv_heads = config.kv_heads;
  layer_kv_heads = config.layer_kv_heads;
  head_dim = config.value_dim();
  max_positions = config.max_positions;
  window = config.window;
  gated = config.gate != Gate::none;
  sink_logits = config.sink_logits;
  sink_layers = config.sink_layers;
  filtered = config.filter.has_value();
  delta = config.delta.layers;
  convolution = config.convolution.layers;
  return layout;
}

}  // namespace gainlens::models
