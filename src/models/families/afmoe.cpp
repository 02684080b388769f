#include "core/check.h"
#include "models/families/common_keys.h"
#include "models/families/expert_keys.h"
#include "models/families/family.h"

#include <cmath>

namespace gainlens::models {
namespace afmoe_family {

/// Experts of the layers behind `num_dense_layers`. Keys of earlier code beside the checkpoints have one value each.
Experts parse_routed(ConfigReader& reader, std::int64_t layers) {
  Experts experts = parse_experts(reader, "num_experts", 64, 6);
  experts.width = reader.integer("moe_intermediate_size", 1, max_expert_width, 1408);
  experts.shared_width = experts.width * reader.integer("num_shared_experts", 1, 4096, 2);
  experts.scores = RouterScores::sigmoid;
  experts.router_correction = true;
  experts.scale = reader.number("route_scale", 1e-6, 1e6, 1);
  const std::int64_t dense = reader.integer("num_dense_layers", 0, layers, 1);
  for (std::int64_t layer = 0; layer < layers; ++layer) experts.layers.push_back(layer >= dense);
  require_value(reader, "score_func", "sigmoid", "the router of this family");
  require_value(reader, "route_norm", true, "the weights of the chosen experts sum to 1");
  for (const char* key : {"n_group", "topk_group", "num_expert_groups", "num_limited_groups"})
    require_value(reader, key, 1, "the experts are not in groups");
  return experts;
}

DecoderConfig parse(ConfigReader& reader) {
  DecoderConfig config = parse_common(reader, {.max_positions = 16384, .head_dim = 128, .norm_epsilon = 1e-5});
  if (reader.boolean("mup_enabled", false)) config.embedding_scale = std::sqrt(static_cast<double>(config.width));
  require_value(reader, "attention_bias", false, "the projections of this family have no biases");
  config.post_norm = true;
  config.qk_norm = QkNorm::head;
  config.gate = Gate::elementwise;
  const std::int64_t pattern = reader.integer("global_attn_every_n_layers", 1, 4096, 4);
  config.window = parse_alternating_windows(reader, config.layers, pattern, 1024);
  for (const std::int64_t window : config.window) config.unrotated.push_back(window == 0);
  config.experts = parse_routed(reader, config.layers);
  return config;
}

TensorNames names() {
  TensorNames names;
  names.gate_score = "self_attn.gate_proj";
  names.attention_post_norm = "post_attention_layernorm";
  names.mlp_norm = "pre_mlp_layernorm";
  names.mlp_post_norm = "post_mlp_layernorm";
  names.router = "mlp.router.gate";
  names.router_correction = "mlp.expert_bias";
  name_experts(names);
  names.shared_gate = "mlp.shared_experts.gate_proj";
  names.shared_up = "mlp.shared_experts.up_proj";
  names.shared_down = "mlp.shared_experts.down_proj";
  return names;
}

TensorNames file_names() {
  TensorNames names = gguf_names();
  names.gate_score = "attn_gate";
  names.router_correction = "exp_probs_b.bias";
  return names;
}

/// Other programs compute files of the family with these values, which the metadata do not hold.
void complete(GgufConfig& gguf) {
  const Json function = gguf.value("expert_gating_func").value_or(2);
  CHECK(function == 2, "{}: {} is {}; must be 2 (sigmoid) in this family", gguf.metadata().where(),
        gguf.full("expert_gating_func"), function.dump());
  gguf.config["route_norm"] = gguf.value("expert_weights_norm").value_or(false);
  gguf.fill("mup_enabled", true, "not in the file; the value of this family");
  gguf.fill("global_attn_every_n_layers", 4,
            "not in the file; in all models of the family each fourth layer is global");
}

std::vector<std::string_view> training_keys() {
  std::vector<std::string_view> keys = router_training_keys();
  for (const char* key : {"load_balance_coeff", "use_grouped_mm"}) keys.emplace_back(key);
  return keys;
}

}  // namespace afmoe_family

Family afmoe() {
  using namespace afmoe_family;
  return {.name = "afmoe",
          .title = "AFMoE",
          .examples = "Trinity Nano, Trinity Mini",
          .classes = {"Afmoe"},
          .parse = parse,
          .tensors = names(),
          .inert_keys = training_keys(),
          .gguf = {.architecture = "afmoe",
                   .tensors = file_names(),
                   .keys = {{"leading_dense_block_count", "num_dense_layers"},
                            {"expert_count", "num_experts"},
                            {"expert_used_count", "num_experts_per_tok"},
                            {"expert_shared_count", "num_shared_experts"},
                            {"expert_feed_forward_length", "moe_intermediate_size"},
                            {"expert_weights_scale", "route_scale"},
                            {"expert_group_count", "n_group"},
                            {"expert_group_used_count", "topk_group"},
                            {"attention.sliding_window", "sliding_window"}},
                   .complete = complete}};
}

}  // namespace gainlens::models
