#include "models/families/common_keys.h"
#include "models/families/family.h"

namespace gainlens::models {
namespace {

constexpr double max_factor = 1e6;

DecoderConfig parse(ConfigReader& reader) {
  DecoderConfig config = parse_common(reader, {.max_positions = 2048, .bos_token = 1});
  config.qkv_bias = config.output_bias = reader.boolean("attention_bias", false);
  config.mlp_bias = reader.boolean("mlp_bias", false);
  config.embedding_scale = reader.number("embedding_multiplier", 1e-6, max_factor, 1);
  config.attention_scale = reader.number("attention_multiplier", 1e-6, max_factor, 1);
  config.residual_scale = reader.number("residual_multiplier", 1e-6, max_factor, 1);
  config.logit_scale = 1 / reader.number("logits_scaling", 1e-6, max_factor, 1);
  return config;
}

}  // namespace

Family granite() {
  return {.name = "granite",
          .title = "Granite",
          .examples = "Granite 3.0 to 3.3 2B and 8B",
          .classes = {"Granite"},
          .parse = parse,
          .tensors = {},
          .gguf = {.architecture = "granite",
                   .tensors = gguf_paired_names(),
                   .keys = {{"embedding_scale", "embedding_multiplier"},
                            {"attention.scale", "attention_multiplier"},
                            {"residual_scale", "residual_multiplier"},
                            {"logit_scale", "logits_scaling"}}}};
}

}  // namespace gainlens::models
