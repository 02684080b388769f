#include "core/error.h"
#include "models/families/common_keys.h"
#include "models/families/family.h"

namespace gainlens::models {
namespace {

DecoderConfig parse(ConfigReader& reader) {
  DecoderConfig config = parse_common(reader, {.max_positions = 2048, .norm_epsilon = 1e-5});
  config.qkv_bias = config.output_bias = reader.boolean("attention_bias", false);
  config.pre_norm = false;
  config.post_norm = true;
  config.qk_norm = QkNorm::whole;
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
          .parse = parse,
          .tensors = names(),
          .gguf = {.architecture = "olmo2", .tensors = gguf_names()}};
}

}  // namespace gainlens::models
