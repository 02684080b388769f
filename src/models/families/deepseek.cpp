#include "core/check.h"
#include "models/families/common_keys.h"
#include "models/families/expert_keys.h"
#include "models/families/family.h"

#include <cmath>

namespace gainlens::models {
namespace deepseek_family {

constexpr std::int64_t max_size = std::int64_t{1} << 20;
// `head_dim`, which the reference writes, is the number of rotated dimensions.
constexpr CommonKeys keys{.head_dim = "qk_rope_head_dim"};

constexpr std::string_view correction_of_gguf = "exp_probs_b.bias";

void parse_latent(ConfigReader& reader, DecoderConfig& config) {
  LatentAttention& latent = config.latent;
  latent.rotated = config.head_dim;
  require_value(reader, "head_dim", latent.rotated, "it is another name of 'qk_rope_head_dim'");
  latent.key_rank = reader.integer("kv_lora_rank", 1, max_size, 512);
  const Json* query_rank = reader.find("q_lora_rank");
  if (query_rank == nullptr || !query_rank->is_null())
    latent.query_rank = reader.integer("q_lora_rank", 1, max_size, 1536);
  config.value_head_dim = reader.integer("v_head_dim", 1, max_size, 128);
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
    parse_expert_groups(reader, experts, std::nullopt, std::nullopt);
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
  parse_expert_groups(reader, experts, 8, 4);
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
  name_experts(names);
  names.shared_gate = "mlp.shared_experts.gate_proj";
  names.shared_up = "mlp.shared_experts.up_proj";
  names.shared_down = "mlp.shared_experts.down_proj";
  return names;
}

TensorNames gguf_tensors() {
  TensorNames names = gguf_paired_names();
  names.query_latent = "attn_q_a";
  names.query_latent_norm = "attn_q_a_norm";
  names.query_of_latent = "attn_q_b";
  names.key_latent = "attn_kv_a_mqa";
  names.key_latent_norm = "attn_kv_a_norm";
  names.key_value_of_latent = "attn_kv_b";
  names.key_of_latent = "attn_k_b";
  names.value_of_latent = "attn_v_b";
  names.router_correction = correction_of_gguf;
  return names;
}

/// The sizes of latent attention. New files describe the short rows as one KV head, and have other keys for the heads
/// that are expanded from them. Older files describe the heads.
void complete_sizes(GgufConfig& gguf) {
  const auto size = [&](std::string_view key) {
    gguf.find(key);
    return gguf.metadata().integer(gguf.full(key), 1, max_size);
  };
  const auto expect = [&](std::string_view key, std::int64_t expected) {
    const std::int64_t found = size(key);
    CHECK(found == expected, "{}: {} is {}; must be {} beside the other sizes of latent attention",
          gguf.metadata().where(), gguf.full(key), found, expected);
  };
  const std::int64_t heads = size("attention.head_count"), rotated = size("rope.dimension_count");
  const std::int64_t rank = size("attention.kv_lora_rank");
  const bool newer = gguf.find("attention.key_length_mla") != nullptr;
  const std::int64_t keys_of_head = size(newer ? "attention.key_length_mla" : "attention.key_length");
  const std::int64_t values = size(newer ? "attention.value_length_mla" : "attention.value_length");
  if (newer) {
    expect("attention.key_length", rank + rotated);
    expect("attention.value_length", rank);
  }
  expect("attention.head_count_kv", newer ? 1 : heads);
  CHECK(keys_of_head > rotated, "{}: {} of {} dimensions of a key are rotated; it must be fewer",
        gguf.metadata().where(), rotated, keys_of_head);
  gguf.config.update({{"num_key_value_heads", heads},
                      {"kv_lora_rank", rank},
                      {"qk_rope_head_dim", rotated},
                      {"qk_nope_head_dim", keys_of_head - rotated},
                      {"v_head_dim", values},
                      {"q_lora_rank", nullptr},
                      {"attention_bias", gguf.has_tensor("blk.0.attn_kv_a_mqa.bias")}});
  if (gguf.value("attention.q_lora_rank").value_or(0) != 0) gguf.config["q_lora_rank"] = size("attention.q_lora_rank");
}

/// The file holds 0.1 mscale_all_dim. In published models mscale is the same.
void complete_scaling(GgufConfig& gguf) {
  const auto multiplier = gguf.value("rope.scaling.yarn_log_multiplier");
  if (!gguf.config.contains("rope_scaling")) return;
  CHECK(multiplier.has_value(),
        "{}: {} is missing; without it the factor on the scores is not known. Files of newer converters have it",
        gguf.metadata().where(), gguf.full("rope.scaling.yarn_log_multiplier"));
  Json& scaling = gguf.config["rope_scaling"];
  scaling["mscale"] = scaling["mscale_all_dim"] =
      10 * gguf.metadata().number(gguf.full("rope.scaling.yarn_log_multiplier"));
}

void complete_experts(GgufConfig& gguf) {
  const bool third = gguf.config.at("model_type") == "deepseek_v3";
  gguf.config["norm_topk_prob"] = gguf.value("expert_weights_norm").value_or(false);
  gguf.config["routed_scaling_factor"] = gguf.value("expert_weights_scale").value_or(1.0);
  const Json function = gguf.value("expert_gating_func").value_or(third ? 2 : 1);
  CHECK(function == (third ? 2 : 1), "{}: {} is {}; must be {} ({}) in this family", gguf.metadata().where(),
        gguf.full("expert_gating_func"), function.dump(), third ? 2 : 1, third ? "sigmoid" : "softmax");
  const auto groups = gguf.value("expert_group_count"), kept = gguf.value("expert_group_used_count");
  if (groups) gguf.config["n_group"] = *groups;
  if (kept) gguf.config["topk_group"] = *kept;
  // Older files leave the groups out. The published models are known by their number of experts.
  const Json experts = gguf.config.value("n_routed_experts", Json(0));
  const bool published = third ? experts == 256 : experts == 160;
  const char* why = published ? "not in the file; the value of the published model" : "not in the file; no groups";
  gguf.fill("n_group", published ? 8 : 1, why);
  gguf.fill("topk_group", !published ? 1 : third ? 4 : 3, why);
  if (!third) gguf.config["topk_method"] = gguf.config["n_group"] == 1 ? "greedy" : "group_limited_greedy";
}

void complete(GgufConfig& gguf) {
  complete_sizes(gguf);
  complete_scaling(gguf);
  complete_experts(gguf);
  leave_out_prediction_blocks(gguf);
}

Family generation(std::string_view name, std::string_view title, std::string_view examples, std::string_view base) {
  Family family{.name = name, .title = title, .examples = examples, .classes = {base}, .keys = keys};
  family.tensors = names();
  family.inert_keys = router_training_keys();
  for (const char* key : {"seq_aux", "ep_size", "num_nextn_predict_layers", "num_mtp_layers"})
    family.inert_keys.emplace_back(key);
  family.further_layers = "eh_proj";
  family.gguf = {.architecture = "deepseek2",
                 .latent = true,
                 .tensors = gguf_tensors(),
                 .keys = {{"leading_dense_block_count", "first_k_dense_replace"},
                          {"expert_count", "n_routed_experts"},
                          {"expert_used_count", "num_experts_per_tok"},
                          {"expert_shared_count", "n_shared_experts"},
                          {"expert_feed_forward_length", "moe_intermediate_size"}},
                 .complete = complete};
  return family;
}

}  // namespace deepseek_family

Family deepseek_v2() {
  using namespace deepseek_family;
  Family family = generation("deepseek_v2", "DeepSeek V2", "DeepSeek V2, V2 Lite, V2.5, Coder V2", "DeepseekV2");
  family.parse = parse_v2;
  return family;
}

Family deepseek_v3() {
  using namespace deepseek_family;
  Family family = generation("deepseek_v3", "DeepSeek V3", "DeepSeek V3, V3.1, R1", "DeepseekV3");
  family.parse = parse_v3;
  family.gguf.chosen_by_tensor = correction_of_gguf;
  return family;
}

}  // namespace gainlens::models
