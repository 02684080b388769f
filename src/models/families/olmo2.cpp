#include "core/error.h"
#include "models/families/common_keys.h"
#include "models/families/family.h"

namespace gainlens::models {
namespace {

// Layers with a window have the base of the others, without their scaling.
constexpr CommonKeys olmo3_keys{
    .rope = {.by_window = true, .window_base = "rope_theta", .default_base = 5e5, .default_window_base = 5e5}};

/// What OLMo 2 and 3 share.
DecoderConfig parse_olmo(ConfigReader& reader, const CommonKeys& keys) {
  DecoderConfig config = parse_common(reader, {.max_positions = 2048, .norm_epsilon = 1e-5}, keys);
  config.qkv_bias = config.output_bias = reader.boolean("attention_bias", false);
  config.pre_norm = false;
  config.post_norm = true;
  config.qk_norm = QkNorm::whole;
  return config;
}

DecoderConfig parse_olmo2(ConfigReader& reader) {
  return parse_olmo(reader, {});
}

DecoderConfig parse_olmo3(ConfigReader& reader) {
  DecoderConfig config = parse_olmo(reader, olmo3_keys);
  config.window = parse_alternating_windows(reader, config.layers, 4, 4096);
  return config;
}

TensorNames names() {
  TensorNames names;
  names.attention_post_norm = "post_attention_layernorm";
  names.mlp_post_norm = "post_feedforward_layernorm";
  return names;
}

}  // namespace

Family olmo2() {
  return {.name = "olmo2",
          .title = "OLMo 2",
          .examples = "OLMo 2 1B to 32B",
          .classes = {"Olmo2"},
          .parse = parse_olmo2,
          .tensors = names(),
          .gguf = {.architecture = "olmo2", .tensors = gguf_names()}};
}

Family olmo3() {
  return {.name = "olmo3",
          .title = "OLMo 3",
          .examples = "OLMo 3 7B, OLMo 3 and 3.1 32B",
          .classes = {"Olmo3"},
          .parse = parse_olmo3,
          .keys = olmo3_keys,
          .tensors = names()};
}

}  // namespace gainlens::models
