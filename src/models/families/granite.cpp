#include "core/check.h"
#include "models/families/common_keys.h"
#include "models/families/expert_keys.h"
#include "models/families/family.h"

namespace gainlens::models {
namespace granite_family {

constexpr double max_factor = 1e6;
constexpr double max_base = 1e30;

/// What all models of the family share.
DecoderConfig parse_granite(ConfigReader& reader, const CommonDefaults& defaults) {
  DecoderConfig config = parse_common(reader, defaults);
  config.qkv_bias = config.output_bias = reader.boolean("attention_bias", false);
  config.embedding_scale = reader.number("embedding_multiplier", 1e-6, max_factor, 1);
  config.attention_scale = reader.number("attention_multiplier", 1e-6, max_factor, 1);
  config.residual_scale = reader.number("residual_multiplier", 1e-6, max_factor, 1);
  config.logit_scale = 1 / reader.number("logits_scaling", 1e-6, max_factor, 1);
  return config;
}

DecoderConfig parse_dense(ConfigReader& reader) {
  DecoderConfig config = parse_granite(reader, {.max_positions = 2048, .bos_token = 1});
  config.mlp_bias = reader.boolean("mlp_bias", false);
  return config;
}

/// The base of each layer's rotary embedding; 0: the layer does not rotate.
std::vector<double> layer_bases(ConfigReader& reader, const DecoderConfig& config) {
  const Json* listed = reader.find_non_null("layer_rope_theta");
  if (listed == nullptr) return std::vector<double>(static_cast<std::size_t>(config.layers), config.rope.base);
  CHECK(listed->is_array() && std::ssize(*listed) == config.layers,
        "{}: 'layer_rope_theta' is {}; must be a list of {} numbers, one per layer", reader.where(), brief(*listed),
        config.layers);
  std::vector<double> bases;
  for (const Json& base : *listed) {
    CHECK(base.is_number() && (base == 0 || (base >= 1 && base <= max_base)),
          "{}: 'layer_rope_theta' holds {}; each must be a base, or 0 for a layer that does not rotate", reader.where(),
          brief(base));
    bases.push_back(base.get<double>());
  }
  return bases;
}

/// Reads the base of each layer. Layers with a window may have another one than the others.
void parse_bases(ConfigReader& reader, DecoderConfig& config) {
  const std::vector<double> bases = layer_bases(reader, config);
  std::optional<double> global, windowed;
  for (std::size_t layer = 0; layer < bases.size(); ++layer) {
    config.unrotated.push_back(bases[layer] == 0);
    if (bases[layer] == 0) continue;
    std::optional<double>& base_of_kind = config.window[layer] > 0 ? windowed : global;
    CHECK(base_of_kind.value_or(bases[layer]) == bases[layer],
          "{}: 'layer_rope_theta' holds {} and {} for layers {} a window; one base for these layers is computed",
          reader.where(), *base_of_kind, bases[layer], config.window[layer] > 0 ? "with" : "without");
    base_of_kind = bases[layer];
  }
  config.rope.base = global ? *global : windowed.value_or(config.rope.base);
  if (!windowed || *windowed == config.rope.base) return;
  config.window_rope = config.rope;
  config.window_rope->base = *windowed;
}

/// The reference multiplies the output of a head by sigmoid(log-sum-exp of its scores - sink): the share of the keys in
/// a softmax that also has the sink.
void parse_windows_and_sinks(ConfigReader& reader, DecoderConfig& config) {
  const std::int64_t window = parse_window(reader, 128);
  config.window = windows_by_type(reader, config.layers, window, "sliding_window is null; set it");
  for (std::int64_t layer = std::ssize(config.window); layer < config.layers; ++layer)
    config.window.push_back(layer % 4 == 0 ? 0 : window);
  config.sink_logits = true;
  parse_bases(reader, config);
}

DecoderConfig parse_windowed(ConfigReader& reader) {
  DecoderConfig config = parse_granite(
      reader, {.max_positions = 8192, .kv_heads = 4, .bos_token = 100257, .norm_epsilon = 1e-5, .tied_head = true});
  config.mlp_bias = reader.boolean("mlp_bias", false);
  parse_windows_and_sinks(reader, config);
  return config;
}

DecoderConfig parse_windowed_moe(ConfigReader& reader) {
  DecoderConfig config = parse_granite(reader, {.max_positions = 2048, .bos_token = 1});
  config.experts = parse_experts(reader, "num_local_experts", 8, 2);
  config.experts.width = config.mlp_width;
  config.experts.shared_width = reader.integer("shared_intermediate_size", 0, max_expert_width, 0);
  parse_windows_and_sinks(reader, config);
  return config;
}

TensorNames windowed_names() {
  TensorNames names;
  names.sink_logit = "self_attn.sinks";
  names.router = "block_sparse_moe.router";
  names.expert_gate_up = "block_sparse_moe.experts.gate_up_proj";
  names.expert_down_stack = "block_sparse_moe.experts.down_proj";
  names.expert_stacks_by_output = true;
  names.shared_gate_up = "shared_mlp.input_linear";
  names.shared_down = "shared_mlp.output_linear";
  return names;
}

}  // namespace granite_family

Family granite() {
  using namespace granite_family;
  return {.name = "granite",
          .title = "Granite",
          .examples = "Granite 3.0 to 3.3 2B and 8B",
          .classes = {"Granite"},
          .parse = parse_dense,
          .tensors = {},
          .gguf = {.architecture = "granite",
                   .tensors = gguf_paired_names(),
                   .keys = {{"embedding_scale", "embedding_multiplier"},
                            {"attention.scale", "attention_multiplier"},
                            {"residual_scale", "residual_multiplier"},
                            {"logit_scale", "logits_scaling"}}}};
}

Family granite_swa() {
  using namespace granite_family;
  return {.name = "granite_swa",
          .title = "Granite SWA",
          .examples = "Granite Swash 2B",
          .classes = {"GraniteSWA"},
          .parse = parse_windowed,
          .tensors = windowed_names()};
}

Family granitemoe_swa() {
  using namespace granite_family;
  return {.name = "granitemoe_swa",
          .title = "Granite MoE SWA",
          .examples = "Granite Swash 3B-A600M",
          .classes = {"GraniteMoeSWA"},
          .parse = parse_windowed_moe,
          .tensors = windowed_names(),
          .inert_keys = router_training_keys()};
}

}  // namespace gainlens::models
