#include "core/check.h"
#include "models/families/common_keys.h"
#include "models/families/family.h"

#include <cmath>

namespace gainlens::models {
namespace falcon_family {

CommonKeys keys_of(std::string_view layers, std::string_view width, std::string_view heads) {
  return {.layers = layers,
          .width = width,
          .mlp_width = "ffn_hidden_size",
          .heads = heads,
          .kv_heads = "",
          .head_dim = "",
          .activation = "activation",
          .norm_epsilon = "layer_norm_epsilon"};
}

/// Number of KV heads: one, as many as query heads, or in the newer architecture any divisor of that number.
std::int64_t parse_kv_heads(ConfigReader& reader, bool grouped, std::int64_t heads) {
  const bool one = reader.boolean("multi_query", true);
  if (grouped) {
    const std::string_view key = either(reader, "num_kv_heads", "n_head_kv");
    if (reader.find_non_null(key) == nullptr) return heads;
    const std::int64_t kv_heads = reader.integer(key, 1, heads);
    CHECK(heads % kv_heads == 0,
          "{}: the number of heads is {} and {} is {}; the first must be a multiple of the second", reader.where(),
          heads, reader.quoted(key), kv_heads);
    return kv_heads;
  }
  for (const char* key : {"num_kv_heads", "n_head_kv"}) reader.find(key);  // the older architecture does not read them
  return one ? 1 : heads;
}

DecoderConfig parse(ConfigReader& reader) {
  const bool alibi = reader.boolean("alibi", false);
  DecoderConfig config =
      parse_common(reader,
                   {.max_positions = 2048,
                    .bos_token = 11,
                    .norm_epsilon = 1e-5,
                    .activation = Activation::gelu_erf,
                    .tied_head = true,
                    .mlp_ratio = 4,
                    .positions = alibi ? Positions::alibi : Positions::rotary},
                   keys_of(either(reader, "num_hidden_layers", "n_layer"), either(reader, "hidden_size", "n_embed"),
                           either(reader, "num_attention_heads", "n_head")));
  const bool grouped = reader.boolean("new_decoder_architecture", false);
  config.kv_heads = parse_kv_heads(reader, grouped, config.heads);
  config.norm = Norm::layer;
  config.norm_bias = true;
  config.qkv_bias = config.output_bias = config.mlp_bias = reader.boolean("bias", false);
  config.gated_mlp = false;
  config.parallel_residual = reader.boolean("parallel_attn", true) || grouped;
  const std::int64_t norms = reader.find_non_null("num_ln_in_parallel_attn") == nullptr
                                 ? (grouped ? 2 : 1)
                                 : reader.integer("num_ln_in_parallel_attn", 1, 2);
  config.shared_norm = config.parallel_residual && norms == 1;
  require_value(reader, "apply_residual_connection_post_layernorm", false,
                "the residual connection adds the stream before its norm");
  if (alibi) {
    for (const char* key : {"rope_theta", "rope_scaling", "rope_parameters"}) reader.find(key);  // without a rotation
    // The bias is added before the scores are scaled, in the precision of the family's own code.
    config.alibi = {.factor = 1 / std::sqrt(static_cast<double>(config.head_dim)), .bfloat16 = true};
  }
  return config;
}

TensorNames names() {
  TensorNames names;
  names.prefix = "transformer.";
  names.embedding = "word_embeddings";
  names.final_norm = "ln_f";
  names.layer = "h.{}.";
  names.query_key_value = "self_attention.query_key_value";
  names.query_key_value_order = RowOrder::grouped;
  names.output = "self_attention.dense";
  names.mlp_up = "mlp.dense_h_to_4h";
  names.mlp_down = "mlp.dense_4h_to_h";
  return names;
}

/// If attention and MLP run in parallel with a norm each, the two norms have other names.
TensorNames names_of(const DecoderConfig& config, TensorNames names) {
  if (config.parallel_residual && !config.shared_norm && names.attention_norm == "input_layernorm") {
    names.attention_norm = "ln_attn";
    names.mlp_norm = "ln_mlp";
  }
  if (config.parallel_residual && !config.shared_norm && names.attention_norm == "attn_norm") {  // GGUF
    names.attention_norm = "attn_norm_2";
    names.mlp_norm = "attn_norm";
  }
  return names;
}

void complete(GgufConfig& gguf) {
  gguf.config["new_decoder_architecture"] = gguf.has_tensor("blk.0.attn_norm_2.weight");
  const auto& metadata = gguf.metadata();
  gguf.find("attention.head_count_kv");
  const std::int64_t heads = metadata.integer(gguf.full("attention.head_count"), 1, 1 << 14);
  const std::int64_t kv_heads = metadata.integer(gguf.full("attention.head_count_kv"), 1, heads, heads);
  gguf.config["num_kv_heads"] = kv_heads;
  gguf.config["multi_query"] = kv_heads == 1;
  gguf.config["bias"] = gguf.has_tensor("blk.0.attn_qkv.bias");
  gguf.fill("rope_theta", 1e4, "not in the file; the value of this family");
}

}  // namespace falcon_family

Family falcon() {
  using namespace falcon_family;
  return {.name = "falcon",
          .title = "Falcon",
          .examples = "Falcon 7B and 40B, Falcon RW",
          .classes = {"Falcon", "RW"},
          .parse = parse,
          .keys = keys_of("num_hidden_layers", "hidden_size", "num_attention_heads"),
          .tensors = names(),
          .names = names_of,
          .gguf = {.architecture = "falcon", .tensors = gguf_joined_names(), .complete = complete}};
}

}  // namespace gainlens::models
