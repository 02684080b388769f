#include "core/check.h"
#include "models/families/common_keys.h"
#include "models/families/family.h"

namespace gainlens::models {
namespace smollm3_family {

constexpr CommonKeys keys{.rope = {.default_base = 2e6}};

/// `no_rope_layers` has 1 for a layer that rotates and 0 for one that does not. Without it each
/// `no_rope_layer_interval`-th layer does not.
std::vector<bool> parse_unrotated(ConfigReader& reader, std::int64_t layers) {
  const std::int64_t interval = reader.integer("no_rope_layer_interval", 1, 4096, 4);
  std::vector<bool> unrotated;
  const Json* listed = reader.find_non_null("no_rope_layers");
  if (listed == nullptr) {
    for (std::int64_t layer = 0; layer < layers; ++layer) unrotated.push_back((layer + 1) % interval == 0);
    return unrotated;
  }
  CHECK(listed->is_array() && std::ssize(*listed) == layers,
        "{}: 'no_rope_layers' is {}; must be a list of {} numbers, one per layer", reader.where(), brief(*listed),
        layers);
  for (const Json& rotates : *listed) {
    CHECK(rotates == 0 || rotates == 1, "{}: 'no_rope_layers' holds {}; each must be 1 (rotated) or 0", reader.where(),
          brief(rotates));
    unrotated.push_back(rotates == 0);
  }
  return unrotated;
}

/// Reads the windows. Without `layer_types`, the layers that do not rotate have the window, if it is used at all.
std::vector<std::int64_t> parse_windows(ConfigReader& reader, const DecoderConfig& config) {
  const bool used = reader.boolean("use_sliding_window", false);
  const bool declared = reader.find_non_null("sliding_window") != nullptr;
  const std::int64_t window = used && declared ? parse_window(reader, 1) : 0;
  const std::string why_none = "use_sliding_window and sliding_window do not give a window; set both";
  std::vector<std::int64_t> windows = windows_by_type(reader, config.layers, window, why_none);
  if (!windows.empty()) return windows;
  for (const bool unrotated : config.unrotated) windows.push_back(unrotated ? window : 0);
  return windows;
}

DecoderConfig parse(ConfigReader& reader) {
  DecoderConfig config =
      parse_common(reader, {.max_positions = 32768, .kv_heads = 4, .bos_token = 128000, .tied_head = true}, keys);
  config.qkv_bias = config.output_bias = reader.boolean("attention_bias", false);
  config.mlp_bias = reader.boolean("mlp_bias", false);
  config.unrotated = parse_unrotated(reader, config.layers);
  config.window = parse_windows(reader, config);
  return config;
}

void complete(GgufConfig& gguf) {
  gguf.fill("no_rope_layer_interval", 4, "not in the file; the value of this family");
}

}  // namespace smollm3_family

Family smollm3() {
  using namespace smollm3_family;
  return {.name = "smollm3",
          .title = "SmolLM3",
          .examples = "SmolLM3 3B",
          .classes = {"SmolLM3"},
          .parse = parse,
          .keys = keys,
          .tensors = {},
          .inert_keys = {"max_window_layers"},
          .gguf = {.architecture = "smollm3", .tensors = gguf_paired_names(), .complete = complete}};
}

}  // namespace gainlens::models
