#include "core/check.h"
#include "models/families/common_keys.h"
#include "models/families/expert_keys.h"
#include "models/families/family.h"

namespace gainlens::models {
namespace qwen2_moe_family {

DecoderConfig parse(ConfigReader& reader) {
  DecoderConfig config = parse_common(reader, {.max_positions = 32768, .kv_heads = 16});
  config.qkv_bias = reader.boolean("qkv_bias", true);
  CHECK(!reader.boolean("use_sliding_window", false) || reader.find_non_null("layer_types") != nullptr,
        "{}: 'use_sliding_window' is true without 'layer_types'; versions of the reference give the window to "
        "different layers, so list them",
        reader.where());
  config.window = parse_layer_windows(reader, config.layers);
  config.experts = parse_experts(reader, either(reader, "num_experts", "num_local_experts"), 60, 4);
  config.experts.width = reader.integer("moe_intermediate_size", 1, max_expert_width, 1408);
  config.experts.shared_width = reader.integer("shared_expert_intermediate_size", 1, max_expert_width, 5632);
  config.experts.shared_score = true;
  config.experts.normalised = reader.boolean("norm_topk_prob", false);
  config.experts.layers = parse_sparse_layers(reader, config.layers);
  return config;
}

TensorNames names() {
  TensorNames names;
  names.router = "mlp.gate";
  name_experts(names);
  names.shared_gate = "mlp.shared_expert.gate_proj";
  names.shared_up = "mlp.shared_expert.up_proj";
  names.shared_down = "mlp.shared_expert.down_proj";
  names.shared_score = "mlp.shared_expert_gate";
  return names;
}

void complete(GgufConfig& gguf) {
  gguf.config["qkv_bias"] = gguf.has_tensor("blk.0.attn_q.bias");
  gguf.fill("norm_topk_prob", false, "not in the file; the value of this family");
}

}  // namespace qwen2_moe_family

Family qwen2_moe() {
  using namespace qwen2_moe_family;
  return {.name = "qwen2_moe",
          .title = "Qwen 2 MoE",
          .examples = "Qwen 1.5 MoE A2.7B, Qwen 2 57B-A14B",
          .classes = {"Qwen2Moe"},
          .parse = parse,
          .tensors = names(),
          .inert_keys = router_training_keys(),
          .gguf = {.architecture = "qwen2moe",
                   .tensors = gguf_names(),
                   .keys = {{"expert_count", "num_experts"},
                            {"expert_used_count", "num_experts_per_tok"},
                            {"expert_feed_forward_length", "moe_intermediate_size"},
                            {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"}},
                   .complete = complete}};
}

}  // namespace gainlens::models
