#include "core/check.h"
#include "models/families/common_keys.h"
#include "models/families/expert_keys.h"
#include "models/families/family.h"

#include <algorithm>

namespace gainlens::models {
namespace qwen3_moe_family {

/// Unlike the other Qwen families, the reference gives a window that is used to all layers, whatever else the file
/// says.
std::vector<std::int64_t> parse_windows(ConfigReader& reader, std::int64_t layers) {
  const bool chosen =
      reader.find_non_null("layer_types") != nullptr || reader.find_non_null("max_window_layers") != nullptr;
  std::vector<std::int64_t> windows = parse_layer_windows(reader, layers);
  if (!reader.boolean("use_sliding_window", false)) return windows;
  const std::int64_t window = parse_window(reader, 4096);
  if (!chosen) windows.assign(windows.size(), window);
  CHECK(std::ranges::count(windows, window) == layers,
        "{}: 'use_sliding_window' is true and 'max_window_layers' or 'layer_types' leaves layers without a window; the "
        "Python reference ignores both keys and gives it to all layers: remove them in a copy of the file",
        reader.where());
  return windows;
}

DecoderConfig parse_qwen3_moe(ConfigReader& reader) {
  DecoderConfig config = parse_common(reader, {.max_positions = 32768, .kv_heads = 4, .head_dim = std::nullopt});
  config.qk_norm = QkNorm::head;
  config.qkv_bias = config.output_bias = reader.boolean("attention_bias", false);
  config.window = parse_windows(reader, config.layers);
  config.experts = parse_experts(reader, either(reader, "num_experts", "num_local_experts"), 128, 8);
  config.experts.width = reader.integer("moe_intermediate_size", 1, max_expert_width, 768);
  config.experts.normalised = reader.boolean("norm_topk_prob", false);
  config.experts.layers = parse_sparse_layers(reader, config.layers);
  return config;
}

TensorNames qwen3_moe_names() {
  TensorNames names;
  names.router = "mlp.gate";
  name_experts(names);
  return names;
}

void complete(GgufConfig& gguf) {
  gguf.fill("norm_topk_prob", true, "not in the file; the value of this family");
}

}  // namespace qwen3_moe_family

Family qwen3_moe() {
  using namespace qwen3_moe_family;
  return {.name = "qwen3_moe",
          .title = "Qwen 3 MoE",
          .examples = "Qwen 3 30B-A3B, Qwen 3 235B-A22B, Qwen 3 Coder",
          .classes = {"Qwen3Moe"},
          .parse = parse_qwen3_moe,
          .tensors = qwen3_moe_names(),
          .inert_keys = router_training_keys(),
          .gguf = {.architecture = "qwen3moe",
                   .tensors = gguf_names(),
                   .keys = {{"expert_count", "num_experts"},
                            {"expert_used_count", "num_experts_per_tok"},
                            {"expert_feed_forward_length", "moe_intermediate_size"}},
                   .complete = complete}};
}

}  // namespace gainlens::models
