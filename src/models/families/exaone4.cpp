#include "models/families/common_keys.h"
#include "models/families/family.h"

namespace gainlens::models {
namespace {

/// In place of a number, published files have a word such as "LLLG" beside `layer_types`, which says the same.
std::int64_t parse_pattern(ConfigReader& reader) {
  const Json* pattern = reader.find_non_null("sliding_window_pattern");
  const bool listed = reader.find_non_null("layer_types") != nullptr;
  return pattern != nullptr && pattern->is_string() && listed ? 4
                                                              : reader.integer("sliding_window_pattern", 1, 4096, 4);
}

DecoderConfig parse(ConfigReader& reader) {
  DecoderConfig config =
      parse_common(reader, {.max_positions = 2048, .kv_heads = 32, .bos_token = 0, .norm_epsilon = 1e-5});
  config.pre_norm = false;
  config.post_norm = true;
  config.qk_norm = QkNorm::head;
  config.window = parse_alternating_windows(reader, config.layers, parse_pattern(reader), 4096);
  // In a model with a window, only the layers that have it rotate.
  if (parse_window(reader, 4096) > 0) {
    for (const std::int64_t window : config.window) config.unrotated.push_back(window == 0);
  }
  return config;
}

TensorNames names() {
  TensorNames names;
  names.attention_post_norm = "post_attention_layernorm";
  names.mlp_post_norm = "post_feedforward_layernorm";
  return names;
}

void complete(GgufConfig& gguf) {
  if (gguf.find("attention.sliding_window") == nullptr) {
    gguf.config["sliding_window"] = nullptr;
  } else if (!copy_window_pattern(gguf)) {
    gguf.fill("sliding_window_pattern", 4,
              "not in the file; in the models of the family that have a window each fourth layer is global");
  }
}

}  // namespace

Family exaone4() {
  return {.name = "exaone4",
          .title = "EXAONE 4",
          .examples = "EXAONE 4.0 1.2B and 32B",
          .classes = {"Exaone4"},
          .parse = parse,
          .tensors = names(),
          .inert_keys = {"cache_implementation"},
          .gguf = {.architecture = "exaone4",
                   .tensors = gguf_names(),
                   .keys = {{"attention.sliding_window", "sliding_window"}},
                   .complete = complete}};
}

}  // namespace gainlens::models
