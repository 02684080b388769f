#include "models/families/common_keys.h"
#include "models/families/family.h"

namespace gainlens::models {
namespace hunyuan_v1_dense_family {

DecoderConfig parse(ConfigReader& reader) {
  const CommonKeys keys{.head_dim = either(reader, "head_dim", "attention_head_dim"),
                        .rope = {.alpha_stretches = true}};
  DecoderConfig config = parse_common(reader, {.max_positions = 2048, .bos_token = 1, .norm_epsilon = 1e-5}, keys);
  config.qkv_bias = config.output_bias = reader.boolean("attention_bias", false);
  config.qk_norm = QkNorm::head;
  config.rotated_before_norm = true;
  require_value(reader, "mlp_bias", false, "the feed-forward layers of this family have no biases");
  require_value(reader, "use_cla", false, "every layer has its own keys and values");
  require_value(reader, "norm_type", "rms", "other norms are not computed");
  require_value(reader, "use_rotary_pos_emb", true, "queries and keys are rotated");
  require_value(reader, "position_embedding_xdrope", false, "only positions of text are computed");
  return config;
}

TensorNames names() {
  TensorNames names;
  names.query_norm = "self_attn.query_layernorm";
  names.key_norm = "self_attn.key_layernorm";
  return names;
}

void complete(GgufConfig& gguf) {
  gguf.config["attention_bias"] = gguf.has_tensor("blk.0.attn_q.bias");
}

}  // namespace hunyuan_v1_dense_family

Family hunyuan_v1_dense() {
  using namespace hunyuan_v1_dense_family;
  return {.name = "hunyuan_v1_dense",
          .title = "HunYuan, dense",
          .examples = "HunYuan 0.5B to 7B",
          .classes = {"HunYuanDenseV1"},
          .parse = parse,
          .tensors = names(),
          .inert_keys = {"cla_share_factor", "add_classification_head", "class_num", "pool_type"},
          // The base in the file is the stretched one.
          .gguf = {.architecture = "hunyuan-dense", .tensors = gguf_names(), .complete = complete}};
}

}  // namespace gainlens::models
