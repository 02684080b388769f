#include "core/error.h"
#include "models/families/common_keys.h"
#include "models/families/family.h"

namespace gainlens::models {
namespace stablelm_family {

constexpr CommonKeys keys{.norm_epsilon = "layer_norm_eps",
                          .rope = {.rotated = "partial_rotary_factor", .default_rotated = 0.25}};

DecoderConfig parse(ConfigReader& reader) {
  DecoderConfig config =
      parse_common(reader, {.max_positions = 4096, .kv_heads = 32, .bos_token = 0, .norm_epsilon = 1e-5}, keys);
  config.norm = Norm::layer;
  config.norm_bias = true;
  config.qkv_bias = reader.boolean("use_qkv_bias", false);
  if (reader.boolean("qk_layernorm", false)) config.qk_norm = QkNorm::heads;
  config.parallel_residual = config.shared_norm = reader.boolean("use_parallel_residual", false);
  return config;
}

TensorNames names() {
  TensorNames names;
  names.query_norm_of_head = "self_attn.q_layernorm.norms.{}.weight";
  names.key_norm_of_head = "self_attn.k_layernorm.norms.{}.weight";
  return names;
}

void complete(GgufConfig& gguf) {
  gguf.config["use_qkv_bias"] = gguf.has_tensor("blk.0.attn_q.bias");
  gguf.config["qk_layernorm"] = gguf.has_tensor("blk.0.attn_q_norm.weight");
  gguf.fill("rope_theta", 1e4, "not in the file; the value of this family");
}

}  // namespace stablelm_family

Family stablelm() {
  using namespace stablelm_family;
  return {.name = "stablelm",
          .title = "StableLM",
          .examples = "StableLM 3B, StableLM 2 1.6B and 12B",
          .classes = {"StableLm", "StableLMEpoch"},
          .parse = parse,
          .keys = keys,
          .tensors = names(),
          .gguf = {.architecture = "stablelm",
                   .tensors = gguf_names(),
                   .keys = {{"use_parallel_residual", "use_parallel_residual"}},
                   .complete = complete}};
}

}  // namespace gainlens::models
