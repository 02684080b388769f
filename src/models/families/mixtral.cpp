#include "models/families/common_keys.h"
#include "models/families/expert_keys.h"
#include "models/families/family.h"

namespace gainlens::models {
namespace mixtral_family {

constexpr CommonKeys keys{.rope = {.default_base = 1e6}};

DecoderConfig parse(ConfigReader& reader) {
  DecoderConfig config =
      parse_common(reader, {.max_positions = 131072, .kv_heads = 8, .bos_token = 1, .norm_epsilon = 1e-5}, keys);
  // This family has no window if the key is absent. The fallback is not used.
  if (reader.find_non_null("sliding_window") != nullptr)
    config.window.assign(config.window.size(), parse_window(reader, 1));
  config.experts = parse_experts(reader, either(reader, "num_local_experts", "num_experts"), 8, 2);
  config.experts.width = config.mlp_width;
  require_value(reader, "attention_bias", false, "the projections of this family have no biases");
  return config;
}

TensorNames names() {
  TensorNames names;
  names.router = "block_sparse_moe.gate";
  names.expert_gate = "block_sparse_moe.experts.{}.w1";
  names.expert_up = "block_sparse_moe.experts.{}.w3";
  names.expert_down = "block_sparse_moe.experts.{}.w2";
  return names;
}

/// router_jitter_noise acts in training only.
std::vector<std::string_view> inert() {
  std::vector<std::string_view> all = router_training_keys();
  all.emplace_back("router_jitter_noise");
  return all;
}

}  // namespace mixtral_family

Family mixtral() {
  using namespace mixtral_family;
  return {.name = "mixtral",
          .title = "Mixtral",
          .examples = "Mixtral 8x7B, Mixtral 8x22B",
          .classes = {"Mixtral"},
          .parse = parse,
          .keys = keys,
          .tensors = names(),
          .inert_keys = inert(),
          .gguf = {.architecture = "llama",
                   .chosen_by = "expert_count",
                   .tensors = gguf_paired_names(),
                   .keys = {{"expert_count", "num_local_experts"}, {"expert_used_count", "num_experts_per_tok"}}}};
}

}  // namespace gainlens::models
