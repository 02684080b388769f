#include "core/check.h"
#include "models/families/common_keys.h"
#include "models/families/expert_keys.h"
#include "models/families/family.h"

#include <cmath>

namespace gainlens::models {
namespace {

constexpr std::int64_t max_size = std::int64_t{1} << 20;
// `head_dim`, which the reference writes, is the number of rotated dimensions.
constexpr CommonKeys keys{.head_dim = "qk_rope_head_dim"};

/// What the two generations use for keys that config.json leaves out.
struct Defaults {
  std::optional<std::int64_t> kv_heads;
  std::int64_t max_positions, bos_token;
};

void parse_latent(ConfigReader& reader, DecoderConfig& config) {
  LatentAttention& latent = config.latent;
  latent.rotated = config.head_dim;
  require_value(reader, "head_dim", latent.rotated, "it is another name of 'qk_rope_head_dim'");
  latent.key_rank = reader.integer("kv_lora_rank", 1, max_size, 512);
  const Json* query_rank = reader.find("q_lora_rank");
  if (query_rank == nullptr || !query_rank->is_null())
    latent.query_rank = reader.integer("q_lora_rank", 1, max_size, 1536);
  latent.value_dim = reader.integer("v_head_dim", 1, max_size, 128);
  config.head_dim = latent.rotated + reader.integer("qk_nope_head_dim", 1, max_size, 128);
  require_value(reader, "qk_head_dim", config.head_dim, "it is the sum of 'qk_nope_head_dim' and 'qk_rope_head_dim'");
  CHECK(config.kv_heads == config.heads,
        "{}: 'num_key_value_heads' is {} and 'num_attention_heads' is {}; latent attention expands keys and values for "
        "every head",
        reader.where(), config.kv_heads, config.heads);
  config.attention_scale = std::pow(config.rope.score_magnitude, 2) / std::sqrt(static_cast<double>(config.head_dim));
  config.qkv_bias = config.output_bias = reader.boolean("attention_bias", false);
}

/// Layers before `first_k_dense_replace` have an MLP of their own.
std::vector<bool> sparse_layers(ConfigReader& reader, std::int64_t layers, std::int64_t default_dense) {
  const std::int64_t dense = reader.integer("first_k_dense_replace", 0, max_size, default_dense);
  require_value(reader, "moe_layer_freq", 1, "each layer after the dense ones has experts");
  std::vector<bool> sparse;
  for (std::int64_t layer = 0; layer < layers; ++layer) sparse.push_back(layer >= dense);
  return sparse;
}

void parse_groups(ConfigReader& reader, Experts& experts, std::optional<std::int64_t> default_groups,
                  std::optional<std::int64_t> default_kept) {
  experts.groups = reader.integer("n_group", 1, experts.count, default_groups);
  experts.kept_groups = reader.integer("topk_group", 1, experts.groups, default_kept);
  const std::int64_t size = experts.count / experts.groups;
  CHECK(experts.count % experts.groups == 0 && size >= experts.group_leaders,
        "{}: {} experts in {} groups ('n_group'); groups must be of one size, at least {}", reader.where(),
        experts.count, experts.groups, experts.group_leaders);
  CHECK(experts.per_token <= experts.kept_groups * size,
        "{}: 'num_experts_per_tok' is {}, and {} groups of {} experts are kept ('topk_group')", reader.where(),
        experts.per_token, experts.kept_groups, size);
}

void parse_widths(ConfigReader& reader, Experts& experts, std::int64_t default_width, std::int64_t default_shared) {
  experts.width = reader.integer("moe_intermediate_size", 1, max_expert_width, default_width);
  experts.shared_width = experts.width * reader.integer("n_shared_experts", 1, 4096, default_shared);
  experts.router_wide = true;
}

DecoderConfig parse_v2(ConfigReader& reader) {
  DecoderConfig config = parse_common(reader, {.max_positions = 2048, .head_dim = 64, .bos_token = 1}, keys);
  parse_latent(reader, config);
  require_value(reader, "mlp_bias", false, "the MLP has no biases");
  Experts& experts = config.experts;
  experts.count = reader.integer(either(reader, "n_routed_experts", "num_experts"), 1, max_experts, 64);
  experts.per_token = reader.integer("num_experts_per_tok", 1, experts.count);
  parse_widths(reader, experts, 1407, 2);
  experts.layers = sparse_layers(reader, config.layers, 0);
  require_value(reader, "scoring_func", "softmax", "the router of this family");
  experts.normalised = false;
  require_value(reader, "norm_topk_prob", false,
                "the Python reference ignores it, the code published with the model does not");
  experts.scale = reader.number("routed_scaling_factor", 1e-6, 1e6, 1);
  const std::string method = reader.find_non_null("topk_method") == nullptr ? "greedy" : reader.text("topk_method");
  CHECK(method == "greedy" || method == "group_limited_greedy",
        "{}: {} is '{}'; must be 'greedy' or 'group_limited_greedy'", reader.where(), reader.quoted("topk_method"),
        printable(method, 60));
  if (method == "greedy") {
    for (const char* key : {"n_group", "topk_group"}) reader.find(key);  // all experts can be chosen
  } else {
    parse_groups(reader, experts, std::nullopt, std::nullopt);
  }
  return config;
}

DecoderConfig parse_v3(ConfigReader& reader) {
  DecoderConfig config =
      parse_common(reader, {.max_positions = 4096, .kv_heads = 128, .head_dim = 64, .bos_token = 0}, keys);
  parse_latent(reader, config);
  require_value(reader, "rope_interleave", true, "rotated rows are stored pair by pair");
  Experts& experts = config.experts;
  experts = parse_experts(reader, either(reader, "n_routed_experts", "num_local_experts"), 256, 8);
  parse_widths(reader, experts, 2048, 1);
  experts.layers = sparse_layers(reader, config.layers, 3);
  require_value(reader, "scoring_func", "sigmoid", "the router of this family");
  require_value(reader, "topk_method", "noaux_tc", "the router of this family");
  experts.scores = RouterScores::sigmoid;
  experts.router_correction = true;
  experts.normalised = reader.boolean("norm_topk_prob", true);
  experts.scale = reader.number("routed_scaling_factor", 1e-6, 1e6, 2.5);
  experts.group_leaders = 2;
  parse_groups(reader, experts, 8, 4);
  return config;
}

TensorNames names() {
  TensorNames names;
  names.rotary_pairs = true;
  names.query_latent = "self_attn.q_a_proj";
  names.query_latent_norm = "self_attn.q_a_layernorm";
  names.query_of_latent = "self_attn.q_b_proj";
  names.key_latent = "self_attn.kv_a_proj_with_mqa";
  names.key_latent_norm = "self_attn.kv_a_layernorm";
  names.key_value_of_latent = "self_attn.kv_b_proj";
  names.router = "mlp.gate";
  names.router_correction = "mlp.gate.e_score_correction_bias";
  names.expert_gate = "mlp.experts.{}.gate_proj";
  names.expert_up = "mlp.experts.{}.up_proj";
  names.expert_down = "mlp.experts.{}.down_proj";
  names.shared_gate = "mlp.shared_experts.gate_proj";
  names.shared_up = "mlp.shared_experts.up_proj";
  names.shared_down = "mlp.shared_experts.down_proj";
  return names;
}

Family generation(std::string_view name, std::string_view title, std::string_view examples, std::string_view base) {
  Family family{.name = name, .title = title, .examples = examples, .classes = {base}, .keys = keys};
  family.tensors = names();
  family.inert_keys = router_training_keys();
  for (const char* key : {"seq_aux", "ep_size", "num_nextn_predict_layers", "num_mtp_layers"})
    family.inert_keys.emplace_back(key);
  family.further_layers = "eh_proj";
  return family;
}

}  // namespace

Family deepseek_v2() {
  Family family = generation("deepseek_v2", "DeepSeek V2", "DeepSeek V2, V2 Lite, V2.5, Coder V2", "DeepseekV2");
  family.parse = parse_v2;
  return family;
}

Family deepseek_v3() {
  Family family = generation("deepseek_v3", "DeepSeek V3", "DeepSeek V3, V3.1, R1", "DeepseekV3");
  family.parse = parse_v3;
  return family;
}

}  // namespace gainlens::models
