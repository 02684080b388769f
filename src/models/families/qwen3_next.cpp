#include "models/families/common_keys.h"
#include "models/families/delta_keys.h"
#include "models/families/expert_keys.h"
#include "models/families/family.h"

namespace gainlens::models {
namespace qwen3_next_family {

constexpr CommonKeys qwen3_next_keys{.rope = {.rotated = "partial_rotary_factor", .default_rotated = 0.25}};

DecoderConfig parse(ConfigReader& reader) {
  DecoderConfig config =
      parse_common(reader, {.max_positions = 32768, .kv_heads = 2, .head_dim = 256}, qwen3_next_keys);
  config.norm_offset = parse_norm_offset(reader);
  config.gate = Gate::elementwise;
  config.qk_norm = QkNorm::head;
  config.qkv_bias = config.output_bias = reader.boolean("attention_bias", false);
  config.delta = parse_delta_layers(reader, config.layers);
  // 0 experts: every layer has an MLP of its own.
  if (const Json* count = reader.find_non_null("num_experts"); count == nullptr || *count != 0) {
    config.experts = parse_experts(reader, "num_experts", 512, 10);
    config.experts.width = reader.integer("moe_intermediate_size", 1, max_expert_width, 512);
    config.experts.normalised = reader.boolean("norm_topk_prob", true);
    config.experts.layers = parse_sparse_layers(reader, config.layers);
    config.experts.shared_width = reader.integer("shared_expert_intermediate_size", 1, max_expert_width, 512);
    config.experts.shared_score = true;
  } else {
    for (const char* key : {"num_experts_per_tok", "moe_intermediate_size", "norm_topk_prob", "decoder_sparse_step",
                            "mlp_only_layers", "shared_expert_intermediate_size"})
      reader.find(key);  // of experts that no layer has
  }
  return config;
}

TensorNames names() {
  TensorNames names = delta_names();
  names.delta_projections = "linear_attn.in_proj_qkvz";
  names.delta_rates = "linear_attn.in_proj_ba";
  names.router = "mlp.gate";
  name_experts(names);
  names.shared_gate = "mlp.shared_expert.gate_proj";
  names.shared_up = "mlp.shared_expert.up_proj";
  names.shared_down = "mlp.shared_expert.down_proj";
  names.shared_score = "mlp.shared_expert_gate";
  return names;
}

TensorNames gguf_tensors() {
  TensorNames names = gguf_delta_names();
  names.delta_rates = "ssm_ba";
  return names;
}

void complete(GgufConfig& gguf) {
  complete_delta(gguf);
  gguf.fill("norm_topk_prob", true, "not in the file; the value of this family");
}

}  // namespace qwen3_next_family

Family qwen3_next() {
  using namespace qwen3_next_family;
  return {.name = "qwen3_next",
          .title = "Qwen 3 Next",
          .examples = "Qwen 3 Next 80B-A3B",
          .classes = {"Qwen3Next"},
          .parse = parse,
          .keys = qwen3_next_keys,
          .tensors = names(),
          .inert_keys = router_training_keys(),
          .inert_tensors = {"mtp."},
          .gguf = {
              .architecture = "qwen3next", .tensors = gguf_tensors(), .keys = gguf_delta_keys(), .complete = complete}};
}

}  // namespace gainlens::models
