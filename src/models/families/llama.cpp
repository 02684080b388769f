#include "models/families/common_keys.h"
#include "models/family.h"

namespace gainlens::models {
namespace {

DecoderConfig parse(ConfigReader& reader) {
  DecoderConfig config = parse_common(reader, {.max_positions = 2048, .bos_token = 1});
  config.qkv_bias = config.output_bias = reader.boolean("attention_bias", false);
  config.mlp_bias = reader.boolean("mlp_bias", false);
  return config;
}

}  // namespace

Family llama() {
  return {.name = "llama", .parse = parse, .tensors = {}, .inert_keys = {}};
}

}  // namespace gainlens::models
