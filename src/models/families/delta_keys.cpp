#include "models/families/delta_keys.h"

#include "core/check.h"
#include "models/families/common_keys.h"

#include <algorithm>

namespace gainlens::models {
namespace {

constexpr std::int64_t max_heads = 1 << 14;
constexpr std::int64_t max_head_dim = 1 << 14;
constexpr std::int64_t max_kernel = 1 << 10;

std::vector<bool> linear_layers(ConfigReader& reader, std::int64_t layers) {
  const std::int64_t interval = reader.integer("full_attention_interval", 1, 4096, 4);
  const Json* types = reader.find_non_null("layer_types");
  std::vector<bool> linear;
  if (types == nullptr) {
    for (std::int64_t layer = 0; layer < layers; ++layer) linear.push_back((layer + 1) % interval != 0);
    return linear;
  }
  CHECK(types->is_array() && std::ssize(*types) == layers,
        "{}: 'layer_types' is {}; must be a list of {} names, one per layer", reader.where(), brief(*types), layers);
  for (const Json& type : *types) {
    CHECK(type == "linear_attention" || type == "full_attention",
          "{}: 'layer_types' has {} at layer {}; must be \"linear_attention\" or \"full_attention\"", reader.where(),
          brief(type), linear.size());
    linear.push_back(type == "linear_attention");
  }
  return linear;
}

}  // namespace

DeltaLayers parse_delta_layers(ConfigReader& reader, std::int64_t layers) {
  DeltaLayers delta;
  delta.layers = linear_layers(reader, layers);
  delta.key_heads = reader.integer("linear_num_key_heads", 1, max_heads, 16);
  delta.value_heads = reader.integer("linear_num_value_heads", 1, max_heads, 32);
  delta.key_dim = reader.integer("linear_key_head_dim", 1, max_head_dim, 128);
  delta.value_dim = reader.integer("linear_value_head_dim", 1, max_head_dim, 128);
  delta.kernel = reader.integer("linear_conv_kernel_dim", 1, max_kernel, 4);
  CHECK(delta.value_heads % delta.key_heads == 0,
        "{}: {} is {} and {} is {}; the first must be a multiple of the second", reader.where(),
        reader.quoted("linear_num_value_heads"), delta.value_heads, reader.quoted("linear_num_key_heads"),
        delta.key_heads);
  require_value(reader, "mamba_ssm_dtype", "float32", "the states of linear attention are computed in float32");
  if (std::ranges::find(delta.layers, true) == delta.layers.end()) delta.layers.clear();
  const Json* activation = reader.find_non_null("hidden_act");
  CHECK(delta.layers.empty() || activation == nullptr || *activation == "silu" || *activation == "swish",
        "{}: {} is {}; in models with linear attention it is also that of the convolution, and only silu is computed "
        "there",
        reader.where(), reader.quoted("hidden_act"), brief(*activation));
  return delta;
}

TensorNames gguf_delta_names() {
  TensorNames names = gguf_names();
  names.gate_by_head = true;
  names.mlp_norm = "post_attention_norm";
  names.delta_query_key_value = "attn_qkv";
  names.delta_gate = "attn_gate";
  names.delta_convolution = "ssm_conv1d";
  names.delta_log_rate = "ssm_a";
  names.delta_rate_exponential = true;
  names.delta_decay_bias = "ssm_dt.bias";
  names.delta_norm = "ssm_norm";
  names.delta_output = "ssm_out";
  return names;
}

std::vector<std::pair<std::string_view, std::string_view>> gguf_delta_keys() {
  return {{"ssm.conv_kernel", "linear_conv_kernel_dim"},
          {"ssm.state_size", "linear_key_head_dim"},
          {"ssm.group_count", "linear_num_key_heads"},
          {"ssm.time_step_rank", "linear_num_value_heads"},
          {"full_attention_interval", "full_attention_interval"},
          {"expert_count", "num_experts"},
          {"expert_used_count", "num_experts_per_tok"},
          {"expert_feed_forward_length", "moe_intermediate_size"},
          {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"}};
}

void complete_delta(GgufConfig& gguf) {
  constexpr std::int64_t largest = std::int64_t{1} << 40;
  const auto size = [&](std::string_view key) {
    gguf.find(key);
    return gguf.metadata().integer(gguf.full(key), 1, largest);
  };
  for (const char* key : {"ssm.conv_kernel", "ssm.state_size", "ssm.group_count"}) size(key);
  const std::int64_t values = size("ssm.inner_size"), heads = size("ssm.time_step_rank");
  CHECK(values % heads == 0, "{}: {} is {} and {} is {}; the first must be a multiple of the second",
        gguf.metadata().where(), gguf.full("ssm.inner_size"), values, gguf.full("ssm.time_step_rank"), heads);
  gguf.config["linear_value_head_dim"] = values / heads;
  gguf.config[norm_offset_key] = 0.0;
  gguf.fill("full_attention_interval", 4, "not in the file; the value of this family");
  leave_out_prediction_blocks(gguf);
}

TensorNames delta_names() {
  TensorNames names;
  names.gate_by_head = true;
  names.delta_convolution = "linear_attn.conv1d";
  names.delta_log_rate = "linear_attn.A_log";
  names.delta_decay_bias = "linear_attn.dt_bias";
  names.delta_norm = "linear_attn.norm";
  names.delta_output = "linear_attn.out_proj";
  return names;
}

}  // namespace gainlens::models
