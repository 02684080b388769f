#include "models/families/other_keys.h"

#include "core/check.h"
#include "models/families/inert_keys.h"
#include "models/families/reference_keys.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

namespace gainlens::models {
namespace {

bool contains(std::span<const std::string_view> list, std::string_view key) {
  return std::find(list.begin(), list.end(), key) != list.end();
}

/// Keys that mean the same, and the value that agrees with what is computed. Null: the decoder has no such value, so
/// nothing can agree.
struct Statement {
  std::string_view what;  ///< for messages
  std::vector<std::string_view> keys;
  Json (*computed)(const DecoderConfig& config) = nullptr;
  std::string_view (*spelled)(const CommonKeys& keys) = nullptr;  ///< the family's own key; null: none
};

bool any_window(const DecoderConfig& config) {
  return std::ranges::any_of(config.window, [](std::int64_t window) { return window > 0; });
}

/// The window of all layers that have one; null if they differ or none has one.
Json common_window(const DecoderConfig& config) {
  Json common;
  for (const std::int64_t window : config.window) {
    if (window == 0) continue;
    if (!common.is_null() && common != window) return nullptr;
    common = window;
  }
  return common;
}

Json layer_types(const DecoderConfig& config) {
  Json types = Json::array();
  for (std::size_t layer = 0; layer < config.window.size(); ++layer) {
    types.push_back(config.has_delta(static_cast<std::int64_t>(layer))         ? "linear_attention"
                    : config.has_convolution(static_cast<std::int64_t>(layer)) ? "conv"
                    : config.window[layer] > 0                                 ? "sliding_attention"
                                                                               : "full_attention");
  }
  return types;
}

Json rotation(const DecoderConfig& config, double RopeConfig::*member) {
  return config.positions == Positions::rotary ? Json(config.rope.*member) : Json();
}

Json rotated_dimensions(const DecoderConfig& config) {
  if (config.positions != Positions::rotary) return nullptr;
  return static_cast<std::int64_t>(static_cast<double>(config.head_dim) * config.rope.rotated);
}

/// A value of the experts; 0 in a decoder without experts.
Json expert_number(const DecoderConfig& config, std::int64_t Experts::*member) {
  return config.experts.count == 0 ? 0 : config.experts.*member;
}

/// True or false if all of the biases agree; else null.
Json any_bias(const DecoderConfig& config) {
  if (config.qkv_bias != config.output_bias || config.qkv_bias != config.mlp_bias) return nullptr;
  return config.qkv_bias;
}

using Config = const DecoderConfig&;
using Keys = const CommonKeys&;

const std::vector<Statement>& statements() {
  static const std::vector<Statement> list = {
      // sizes and numbers
      {"the number of layers",
       {"num_hidden_layers", "n_layer", "n_layers", "num_layers"},
       [](Config c) { return Json(c.layers); },
       [](Keys k) { return k.layers; }},
      {"the width of the residual stream",
       {"hidden_size", "n_embd", "n_embed", "d_model", "dim"},
       [](Config c) { return Json(c.width); },
       [](Keys k) { return k.width; }},
      {"the width of the MLP",
       {"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "d_ff"},
       [](Config c) { return Json(c.mlp_width); },
       [](Keys k) { return k.mlp_width; }},
      {"the number of query heads",
       {"num_attention_heads", "n_head", "n_heads", "num_heads"},
       [](Config c) { return Json(c.heads); },
       [](Keys k) { return k.heads; }},
      {"the number of KV heads",
       {"num_key_value_heads", "num_kv_heads", "n_head_kv", "n_kv_heads", "multi_query_group_num"},
       [](Config c) { return Json(c.kv_heads); },
       [](Keys k) { return k.kv_heads; }},
      {"query heads per KV head", {"num_key_value_groups"}, [](Config c) { return Json(c.heads / c.kv_heads); }},
      {"one KV head for all query heads", {"multi_query"}, [](Config c) { return Json(c.kv_heads == 1); }},
      {"the size of a head",
       {"head_dim", "kv_channels", "d_kv", "qk_head_dim", "v_head_dim"},
       [](Config c) { return Json(c.head_dim); },
       [](Keys k) { return k.head_dim; }},
      {"the size of the vocabulary", {"padded_vocab_size", "n_vocab"}, [](Config c) { return Json(c.vocabulary); }},
      {"the epsilon of the norms",
       {"rms_norm_eps", "rms_norm_epsilon", "layer_norm_eps", "layer_norm_epsilon", "layernorm_epsilon", "norm_eps",
        "norm_epsilon"},
       [](Config c) { return Json(c.norm_epsilon); },
       [](Keys k) { return k.norm_epsilon; }},
      {"the base of the rotary embedding",
       {"rope_theta", "rotary_emb_base", "rotary_base", "rope_base"},
       [](Config c) { return rotation(c, &RopeConfig::base); },
       [](Keys k) { return k.rope.base; }},
      {"the share of a head that is rotated",
       {"partial_rotary_factor", "rotary_pct", "rope_pct", "rotary_percent"},
       [](Config c) { return rotation(c, &RopeConfig::rotated); },
       [](Keys k) { return k.rope.rotated; }},
      {"the number of a head's dimensions that are rotated", {"rotary_dim"}, rotated_dimensions},
      // parts that a decoder has or does not have
      {"biases of queries, keys and values",
       {"attention_bias", "qkv_bias", "use_qkv_bias", "add_qkv_bias"},
       [](Config c) { return Json(c.qkv_bias); }},
      {"biases of the attention's output projection",
       {"attention_out_bias", "attention_output_bias", "o_proj_bias"},
       [](Config c) { return Json(c.output_bias); }},
      {"biases of the MLP", {"mlp_bias", "use_mlp_bias", "add_ffn_bias"}, [](Config c) { return Json(c.mlp_bias); }},
      {"biases of all projections", {"bias", "use_bias"}, any_bias},
      {"norms of queries and keys",
       {"use_qk_norm", "qk_norm", "qk_layernorm", "use_qk_layernorm"},
       [](Config c) { return Json(c.qk_norm != QkNorm::none); }},
      {"attention and MLP that read the same stream",
       {"use_parallel_residual", "parallel_attn", "parallel_residual"},
       [](Config c) { return Json(c.parallel_residual); }},
      {"a gate for each head", {"headwise_attn_output_gate"}, [](Config c) { return Json(c.gate == Gate::headwise); }},
      {"a gate for each dimension",
       {"elementwise_attn_output_gate"},
       [](Config c) { return Json(c.gate == Gate::elementwise); }},
      {"positions by ALiBi", {"alibi", "use_alibi"}, [](Config c) { return Json(c.positions == Positions::alibi); }},
      {"learned sink logits",
       {"attention_sink_bias", "use_attention_sinks"},
       [](Config c) { return Json(c.sink_logits); }},
      {"layers with a window", {"use_sliding_window"}, [](Config c) { return Json(any_window(c)); }},
      {"the window", {"sliding_window", "sliding_window_size", "attention_window_size"}, common_window},
      {"the kinds of the layers", {"layer_types"}, layer_types},
      {"the number of experts",
       {"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"},
       [](Config c) { return expert_number(c, &Experts::count); }},
      {"experts for each token",
       {"num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_topk"},
       [](Config c) { return expert_number(c, &Experts::per_token); }},
      // parts that no decoder has here
      {"experts for all tokens are not computed",
       {"n_shared_experts", "num_shared_experts"},
       [](Config c) { return c.experts.shared_width == 0 ? Json(0) : Json(); }},
      {"the width of the expert for all tokens",
       {"shared_expert_intermediate_size", "shared_intermediate_size"},
       [](Config c) { return expert_number(c, &Experts::shared_width); }},
      {"such layers are not computed", {"num_nextn_predict_layers", "num_mtp_layers"}, [](Config) { return Json(0); }},
      {"such tokens are not computed", {"n_special"}, [](Config) { return Json(0); }},
      {"a bias of the output head", {"lm_head_bias"}, [](Config c) { return Json(c.head_bias); }},
      {"other positions are not computed", {"use_mrope", "use_dynamic_ntk"}, [](Config) { return Json(false); }},
      {"scores are not scaled by the length", {"use_logn_attn"}, [](Config) { return Json(false); }},
      {"a query sees no later key",
       {"use_bidirectional_attention", "bidirectional", "prefix_lm"},
       [](Config) { return Json(false); }},
      {"a query sees no later key", {"is_causal", "causal"}, [](Config) { return Json(true); }},
      {"only text is computed by one decoder", {"use_cross_attention"}, [](Config) { return Json(false); }},
      {"the factor on the embedded tokens",
       {"embedding_multiplier", "scale_emb", "embedding_scale", "emb_scale"},
       [](Config c) { return Json(c.embedding_scale); }},
      {"the factor on the results of attention and MLP",
       {"residual_multiplier", "residual_scale"},
       [](Config c) { return Json(c.residual_scale); }},
      {"the factor on the logits", {"logit_scale", "lm_head_multiplier"}, [](Config c) { return Json(c.logit_scale); }},
      {"the divisor of the logits", {"logits_scaling"}, [](Config c) { return Json(1 / c.logit_scale); }},
      {"positions are not scaled",
       {"interpolate_factor", "rope_ratio", "rotary_scaling_factor", "rope_scaling_factor"},
       [](Config) { return Json(1); }},
      {"every layer has the same attention", {"full_attn_mod"}, [](Config) { return Json(1); }},
  };
  return list;
}

const Statement* statement_of(std::string_view key) {
  for (const Statement& statement : statements()) {
    if (contains(statement.keys, key)) return &statement;
  }
  return nullptr;
}

constexpr std::string_view activation_keys[] = {"hidden_act", "hidden_activation", "activation_function", "activation"};
constexpr std::string_view position_keys[] = {"position_embedding_type", "position_encoding_type"};
constexpr std::string_view length_keys[] = {"max_position_embeddings",
                                            "max_sequence_length",
                                            "max_seq_length",
                                            "max_seq_len",
                                            "seq_length",
                                            "seq_len",
                                            "n_positions",
                                            "n_ctx",
                                            "model_max_length",
                                            "max_context_length"};

/// Whether a key has a meaning in other families or programs, so that another value than the accepted ones asks for
/// another computation.
bool has_meaning(std::string_view key) {
  return contains(activation_keys, key) || contains(position_keys, key) || contains(length_keys, key);
}

/// The activation under the names that other families use for its key.
bool states_activation(const DecoderConfig& config, std::string_view key, const Json& value) {
  return contains(activation_keys, key) && value.is_string() &&
         activation_named(value.get<std::string>()) == config.activation;
}

bool states_positions(const DecoderConfig& config, std::string_view key, const Json& value) {
  if (!contains(position_keys, key)) return false;
  switch (config.positions) {
    case Positions::rotary:
      return value == "rope" || value == "rotary";
    case Positions::learned:
      return value == "learned" || value == "learned_absolute" || value == "absolute";
    case Positions::alibi:
      return value == "alibi";
  }
  return false;
}

/// The longest text. It decides no number: what does (learned positions, some scalings of the rotary embedding) is read
/// from the family's own key.
bool limits_length(std::string_view key, const Json& value) {
  return contains(length_keys, key) && value.is_number_integer() && value > 0;
}

/// A window that the file itself switches off.
bool is_unused_window(const ConfigReader& reader, std::string_view key, const Json& value) {
  if (key != "sliding_window" && key != "max_window_layers") return false;
  const auto used = reader.json().find("use_sliding_window");
  return used != reader.json().end() && *used == false && value.is_number_integer();
}

void check_statement(const ConfigReader& reader, const DecoderConfig& config, const CommonKeys& keys,
                     const std::string& key, const Statement& statement, std::span<const std::string_view> inert) {
  const Json& value = reader.json().at(key);
  const Json computed = statement.computed(config);
  if (computed.is_null()) reader.refuse(key, inert);
  if (value == computed) return;
  const std::string own = statement.spelled == nullptr ? "" : std::string(statement.spelled(keys));
  if (!own.empty() && reader.json().contains(own)) {
    throw_invalid("{}: {} is {} and {} is {}; they mean the same ({}) and must agree", reader.where(),
                  reader.quoted(key), brief(value), reader.quoted(own), brief(reader.json().at(own)), statement.what);
  }
  throw_invalid("{}: {} is {}; this family computes only {}: {}", reader.where(), reader.quoted(key), brief(value),
                brief(computed), statement.what);
}

bool is_usual(const Json& value, const ReferenceKey& known) {
  return !known.usual_value.empty() && value == Json::parse(known.usual_value);
}

}  // namespace

void check_other_keys(ConfigReader& reader, const DecoderConfig& config, const Family& family, bool by_reference) {
  std::vector<std::string> ignored;
  for (const std::string& key : reader.unread()) {
    const Json& value = reader.json().at(key);
    if (value.is_null() || contains(inert_keys(), key) || contains(family.inert_keys, key) ||
        is_inert_by_kind(key, value))
      continue;
    if (limits_length(key, value) || is_unused_window(reader, key, value)) continue;
    if (states_activation(config, key, value) || states_positions(config, key, value)) continue;
    if (const Statement* statement = statement_of(key)) {
      check_statement(reader, config, family.keys, key, *statement, inert_keys());
      continue;
    }
    const ReferenceKey known = reference_key(family.name, key);
    if (known.read && is_usual(value, known)) continue;
    if (known.read || !by_reference || has_meaning(key) || reader.is_misspelt(key)) reader.refuse(key, inert_keys());
    ignored.push_back(reader.quoted(key));
  }
  if (ignored.empty()) return;
  reader.note(fmt::format("{} that the Python reference of model_type '{}' does not read: {}; {} ignored",
                          ignored.size() == 1 ? "a key of config.json" : "keys of config.json", family.name,
                          fmt::join(ignored, ", "), ignored.size() == 1 ? "it is" : "they are"));
}

}  // namespace gainlens::models
