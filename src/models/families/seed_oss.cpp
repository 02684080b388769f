#include "models/families/common_keys.h"
#include "models/families/family.h"

namespace gainlens::models {
namespace seed_oss_family {

DecoderConfig parse(ConfigReader& reader) {
  DecoderConfig config =
      parse_common(reader, {.max_positions = 524288, .kv_heads = 8, .head_dim = 128, .bos_token = 0});
  config.qkv_bias = reader.boolean("attention_bias", true);
  config.output_bias = reader.boolean("attention_out_bias", false);
  config.mlp_bias = reader.boolean("mlp_bias", false);
  return config;
}

TensorNames file_names() {
  TensorNames names = gguf_names();
  names.mlp_norm = "post_attention_norm";
  return names;
}

void complete(GgufConfig& gguf) {
  gguf.config["attention_bias"] = gguf.has_tensor("blk.0.attn_q.bias");
  gguf.config["attention_out_bias"] = gguf.has_tensor("blk.0.attn_output.bias");
  gguf.config["mlp_bias"] = gguf.has_tensor("blk.0.ffn_up.bias");
}

}  // namespace seed_oss_family

Family seed_oss() {
  using namespace seed_oss_family;
  return {.name = "seed_oss",
          .title = "Seed-OSS",
          .examples = "Seed-OSS 36B",
          .classes = {"SeedOss"},
          .parse = parse,
          .tensors = {},
          .gguf = {.architecture = "seed_oss", .tensors = file_names(), .complete = complete}};
}

}  // namespace gainlens::models
