#include "core/check.h"
#include "models/families/common_keys.h"
#include "models/families/family.h"

namespace gainlens::models {
namespace mpt_family {

constexpr CommonKeys keys{.layers = "n_layers",
                          .width = "d_model",
                          .mlp_width = "",
                          .heads = "n_heads",
                          .kv_heads = "",
                          .head_dim = "",
                          .positions = "max_seq_len",
                          .activation = "",
                          .norm_epsilon = "layer_norm_epsilon"};

void parse_attention(ConfigReader& reader, DecoderConfig& config) {
  auto attention = reader.object("attn_config");
  if (!attention) return;
  require_value(*attention, "alibi", true, "positions come from ALiBi alone");
  require_value(*attention, "alibi_bias_max", 8, "other slopes are not computed");
  require_value(*attention, "attn_type", "multihead_attention", "every head has its own keys");
  require_value(*attention, "prefix_lm", false, "a query sees no later key");
  require_value(*attention, "qk_ln", false, "queries and keys are not normalised");
  require_value(*attention, "attn_uses_sequence_id", false, "a text is one sequence");
  // Files of later versions have these too.
  require_value(*attention, "kv_n_heads", reader.json().value("n_heads", Json()), "every head has its own keys");
  require_value(*attention, "qk_gn", false, "queries and keys are not normalised");
  require_value(*attention, "sliding_window_size", -1, "every layer sees the whole text");
  require_value(*attention, "rope", false, "positions come from ALiBi alone");
  const double clip = parse_optional_positive(*attention, "clip_qkv", std::nullopt);
  if (clip > 0) config.qkv_clip = clip;
  config.attention_scale = parse_optional_positive(*attention, "softmax_scale", std::nullopt);
  static constexpr std::string_view inert[] = {"attn_pdrop", "attn_impl",        "model_type",    "rope_impl",
                                               "rope_theta", "rope_dail_config", "rope_hf_config"};
  attention->refuse_unread_values(inert);
}

DecoderConfig parse(ConfigReader& reader) {
  DecoderConfig config = parse_common(reader,
                                      {.max_positions = 2048,
                                       .norm_epsilon = 1e-5,
                                       .activation = Activation::gelu_erf,
                                       .tied_head = true,
                                       .mlp_ratio = reader.integer("expansion_ratio", 1, 64, 4),
                                       .positions = Positions::alibi},
                                      keys);
  config.norm = Norm::layer;
  config.gated_mlp = false;
  parse_attention(reader, config);
  require_value(reader, "no_bias", true, "nothing has a bias");
  require_value(reader, "logit_scale", nullptr, "logits are not scaled");
  const std::string norm = reader.find_non_null("norm_type") == nullptr ? "layernorm" : reader.text("norm_type");
  CHECK(norm == "layernorm" || norm == "low_precision_layernorm",
        "{}: 'norm_type' is '{}'; must be layernorm or low_precision_layernorm", reader.where(), printable(norm, 60));
  require_value(reader, "embedding_fraction", 1.0, "another value is for training only");
  return config;
}

TensorNames names() {
  TensorNames names;
  names.prefix = "transformer.";
  names.embedding = "wte";
  names.final_norm = "norm_f";
  names.layer = "blocks.{}.";
  names.attention_norm = "norm_1";
  names.query_key_value = "attn.Wqkv";
  names.output = "attn.out_proj";
  names.mlp_norm = "norm_2";
  names.mlp_up = "ffn.up_proj";
  names.mlp_down = "ffn.down_proj";
  return names;
}

void complete(GgufConfig& gguf) {
  const auto& metadata = gguf.metadata();
  gguf.find("feed_forward_length");
  const std::int64_t width = metadata.integer(gguf.full("embedding_length"), 1, 1 << 20);
  const std::int64_t mlp_width = metadata.integer(gguf.full("feed_forward_length"), 1, 1 << 24);
  CHECK(mlp_width % width == 0, "{}: {} is {} and the width is {}; the first must be a multiple of the second",
        metadata.where(), gguf.full("feed_forward_length"), mlp_width, width);
  gguf.config["expansion_ratio"] = mlp_width / width;
  Json attention = Json::object();
  if (const auto most = gguf.value("attention.max_alibi_bias")) attention["alibi_bias_max"] = *most;
  if (const auto clip = gguf.value("attention.clamp_kqv")) attention["clip_qkv"] = *clip;
  gguf.config["attn_config"] = attention;
}

}  // namespace mpt_family

Family mpt() {
  using namespace mpt_family;
  return {.name = "mpt",
          .title = "MPT",
          .examples = "MPT 7B and 30B",
          .classes = {"Mpt", "MPT"},
          .parse = parse,
          .keys = keys,
          .tensors = names(),
          .inert_keys = {"learned_pos_emb", "verbose", "fc_type"},
          .gguf = {.architecture = "mpt", .tensors = gguf_joined_names(), .complete = complete}};
}

}  // namespace gainlens::models
