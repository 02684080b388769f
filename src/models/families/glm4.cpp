#include "models/families/common_keys.h"
#include "models/families/family.h"

namespace gainlens::models {
namespace glm4_family {

constexpr CommonKeys keys{.rope = {.rotated = "partial_rotary_factor", .default_rotated = 0.5}};

DecoderConfig parse(ConfigReader& reader) {
  DecoderConfig config =
      parse_common(reader, {.max_positions = 131072, .kv_heads = 2, .head_dim = 128, .norm_epsilon = 1.5625e-7}, keys);
  config.qkv_bias = reader.boolean("attention_bias", true);
  config.post_norm = true;
  return config;
}

TensorNames names() {
  TensorNames names;
  names.attention_post_norm = "post_self_attn_layernorm";
  names.mlp_gate_up = "mlp.gate_up_proj";
  names.mlp_post_norm = "post_mlp_layernorm";
  names.rotary_pairs = true;
  return names;
}

TensorNames file_names() {
  TensorNames names = gguf_paired_names();
  names.mlp_gate_up = "ffn_up";
  return names;
}

void complete(GgufConfig& gguf) {
  gguf.config["attention_bias"] = gguf.has_tensor("blk.0.attn_q.bias");
}

}  // namespace glm4_family

Family glm4() {
  using namespace glm4_family;
  return {.name = "glm4",
          .title = "GLM-4",
          .examples = "GLM-4-0414 9B and 32B, GLM-Z1",
          .classes = {"Glm4"},
          .parse = parse,
          .keys = keys,
          .tensors = names(),
          .gguf = {.architecture = "glm4", .tensors = file_names(), .complete = complete}};
}

}  // namespace gainlens::models
