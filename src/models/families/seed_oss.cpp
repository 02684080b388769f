#include "models/families/common_keys.h"
#include "models/families/family.h"

namespace gainlens::models {
namespace {

DecoderConfig parse(ConfigReader& reader) {
  DecoderConfig config =
      parse_common(reader, {.max_positions = 524288, .kv_heads = 8, .head_dim = 128, .bos_token = 0});
  config.qkv_bias = reader.boolean("attention_bias", true);
  config.output_bias = reader.boolean("attention_out_bias", false);
  config.mlp_bias = reader.boolean("mlp_bias", false);
  return config;
}

}  // namespace

Family seed_oss() {
  return {.name = "seed_oss",
          .title = "Seed-OSS",
          .examples = "Seed-OSS 36B",
          .classes = {"SeedOss"},
          .parse = parse,
          .tensors = {}};
}

}  // namespace gainlens::models
