#include "core/check.h"
#include "models/families/common_keys.h"
#include "models/families/expert_keys.h"
#include "models/families/family.h"

namespace gainlens::models {
namespace gpt_oss_family {

DecoderConfig parse_gpt_oss(ConfigReader& reader) {
  CHECK(reader.find_non_null("rope_scaling") != nullptr || reader.find_non_null("rope_parameters") != nullptr,
        "{}: neither 'rope_scaling' nor 'rope_parameters' is there; this family scales its rotary embedding, and the "
        "file must say how",
        reader.where());
  CommonKeys keys;
  keys.rope.default_base = 150000;
  DecoderConfig config =
      parse_common(reader, {.max_positions = 131072, .kv_heads = 8, .head_dim = 64, .norm_epsilon = 1e-5}, keys);
  CHECK(config.activation == Activation::silu,
        "{}: 'hidden_act' is not silu; the experts of this family use no other activation", reader.where());
  config.qkv_bias = config.output_bias = reader.boolean("attention_bias", true);
  config.sink_logits = true;
  config.window = parse_alternating_windows(reader, config.layers, 2, 128);
  config.experts = parse_experts(reader, "num_local_experts", 128, 4);
  config.experts.width = config.mlp_width;
  config.experts.router_bias = config.experts.bias = true;
  config.clipped_gate =
      ClippedGate{reader.number("swiglu_limit", 1e-6, 1e6, 7), reader.number("swiglu_alpha", 1e-6, 1e6, 1.702)};
  const Json* active = reader.find_non_null("experts_per_token");  // older name; some files have both
  CHECK(active == nullptr || *active == config.experts.per_token,
        "{}: 'experts_per_token' is {} and 'num_experts_per_tok' is {}; they must agree", reader.where(),
        brief(*active), config.experts.per_token);
  return config;
}

TensorNames gpt_oss_names() {
  TensorNames names;
  names.sink_logit = "self_attn.sinks";
  names.router = "mlp.router";
  names.expert_gate_up = "mlp.experts.gate_up_proj";
  names.expert_gate_up_bias = "mlp.experts.gate_up_proj_bias";
  names.expert_down_stack = "mlp.experts.down_proj";
  names.expert_down_bias = "mlp.experts.down_proj_bias";
  return names;
}

TensorNames file_names() {
  TensorNames names = gguf_names();
  names.mlp_norm = "post_attention_norm";
  return names;
}

void complete(GgufConfig& gguf) {
  if (gguf.config.contains("rope_scaling") && !gguf.config["rope_scaling"].contains("truncate")) {
    gguf.config["rope_scaling"]["truncate"] = false;
    gguf.remarks.push_back("rope_scaling.truncate = false (not in the file; the value of this family)");
  }
  gguf.fill("swiglu_limit", 7.0, "not in the file; the value of this family");
}

}  // namespace gpt_oss_family

Family gpt_oss() {
  using namespace gpt_oss_family;
  std::vector<std::string_view> inert = router_training_keys();
  inert.push_back("initial_context_length");  // repeats original_max_position_embeddings of the rotary embedding
  return {.name = "gpt_oss",
          .title = "gpt-oss",
          .examples = "gpt-oss 20B and 120B; in MXFP4, as GGUF, or in 16 or 32 bits",
          .classes = {"GptOss"},
          .parse = parse_gpt_oss,
          .keys = {.rope = {.default_base = 150000}},
          .tensors = gpt_oss_names(),
          .inert_keys = inert,
          .gguf = {.architecture = "gpt-oss",
                   .tensors = file_names(),
                   .keys = {{"expert_count", "num_local_experts"},
                            {"expert_used_count", "num_experts_per_tok"},
                            {"expert_feed_forward_length", "intermediate_size"},
                            {"attention.sliding_window", "sliding_window"}},
                   .complete = complete}};
}

}  // namespace gainlens::models
