#include "core/check.h"
#include "models/families/common_keys.h"
#include "models/families/expert_keys.h"
#include "models/families/family.h"

#include <algorithm>
#include <cmath>

namespace gainlens::models {
namespace mimo_v2_flash_family {

constexpr std::int64_t max_size = std::int64_t{1} << 20;
constexpr std::string_view window_base_key = "swa_rope_theta";

constexpr CommonKeys keys{.rope = {.rotated = "partial_rotary_factor",
                                   .by_window = true,
                                   .window_base = window_base_key,
                                   .default_base = 5e6,
                                   .default_rotated = 0.334,
                                   .default_window_base = 1e4}};

/// The reference reads the rotary embeddings from `rope_parameters` alone. Published files have other keys, whose
/// values are its defaults.
void check_rotations(ConfigReader& reader, const DecoderConfig& config) {
  require_value(reader, "rope_scaling", nullptr, "this family reads 'rope_parameters', with one object for each kind");
  const Json* parameters = reader.find_non_null("rope_parameters");
  if (parameters == nullptr) {
    const std::string why = "this family reads 'rope_parameters', and this is the value without them";
    require_value(reader, keys.rope.base, keys.rope.default_base, why);
    require_value(reader, window_base_key, *keys.rope.default_window_base, why);
    require_value(reader, keys.rope.rotated, keys.rope.default_rotated, why);
  } else {
    for (const char* kind : {"full_attention", "sliding_attention"}) {
      const auto found = parameters->find(kind);
      CHECK(found != parameters->end() && found->is_object() && found->contains("rope_theta"),
            "{}: 'rope_parameters' is {}; must have one object for each kind of layer, 'full_attention' and "
            "'sliding_attention', each with its 'rope_theta'",
            reader.where(), brief(*parameters));
    }
  }
  const RopeConfig& window = config.window_rope.value_or(config.rope);
  for (const RopeConfig& rope : {config.rope, window}) {
    CHECK(rope.scaling == RopeScaling::none, "{}: 'rope_type' is not default; no scaling is read in this family",
          reader.where());
    const auto rotated = static_cast<std::int64_t>(static_cast<double>(config.head_dim) * rope.rotated);
    CHECK(rotated >= 2 && rotated % 2 == 0,
          "{}: {} of a head's {} dimensions are rotated; it must be an even number, at least 2", reader.where(),
          rotated, config.head_dim);
  }
}

/// `sliding_window`, or one more than `sliding_window_size`, which counts the keys before the query and comes first.
std::int64_t window_of(ConfigReader& reader) {
  const std::int64_t stated = parse_window(reader, 129);
  return reader.find_non_null("sliding_window_size") == nullptr
             ? stated
             : reader.integer("sliding_window_size", 1, std::int64_t{1} << 31) + 1;
}

/// The first layer and each sixth are global, if the file does not list them.
void parse_windows(ConfigReader& reader, DecoderConfig& config) {
  const std::int64_t window = window_of(reader);
  constexpr const char* why_none = "sliding_window is null; set it";
  std::vector<std::int64_t> windows = windows_by_type(reader, config.layers, window, why_none);
  for (std::int64_t layer = std::ssize(windows); layer < config.layers; ++layer) {
    const bool global = layer == 0 || (layer + 1) % 6 == 0;
    CHECK(global || window > 0, "{}: layer {} has a window, but {}", reader.where(), layer, why_none);
    windows.push_back(global ? 0 : window);
  }
  config.window = std::move(windows);
}

/// Layers with a window have twice as many KV heads as the others, and sinks.
void parse_kinds(ConfigReader& reader, DecoderConfig& config) {
  const std::int64_t global = config.kv_heads, windowed = 2 * global;
  for (const std::int64_t window : config.window) {
    config.layer_kv_heads.push_back(window > 0 ? windowed : global);
    config.sink_layers.push_back(window > 0);
  }
  config.kv_heads = std::ranges::max(config.layer_kv_heads);
  config.sink_logits = config.kv_heads == windowed;
  CHECK(config.heads % config.kv_heads == 0,
        "{}: 'num_attention_heads' is {} and layers with a window have twice 'num_key_value_heads', {} KV heads; the "
        "first must be a multiple of the second",
        reader.where(), config.heads, config.kv_heads);
  require_value(reader, "swa_num_key_value_heads", windowed, "twice 'num_key_value_heads'");
  require_value(reader, "swa_num_attention_heads", config.heads, "all layers have the same number of query heads");
  require_value(reader, "add_swa_attention_sink_bias", true, "layers with a window have sinks");
  require_value(reader, "add_full_attention_sink_bias", false, "layers without a window have no sinks");
}

void parse_values(ConfigReader& reader, DecoderConfig& config) {
  config.value_head_dim = reader.integer("v_head_dim", 1, max_size, 128);
  require_value(reader, "swa_head_dim", config.head_dim, "heads of all layers have the same size");
  require_value(reader, "swa_v_head_dim", *config.value_head_dim, "values of all layers have the same size");
  const Json* scale = reader.find("attention_value_scale");
  config.value_scale =
      scale != nullptr && scale->is_null() ? 1 : reader.number("attention_value_scale", 1e-6, 1e6, 0.707);
  config.qkv_bias = reader.boolean("attention_bias", false);
  require_value(reader, "attention_projection_layout", "split",
                "queries, keys and values are read from tensors of their own");
}

/// [layer] whether it has experts: all but the first, if the file does not list them.
std::vector<bool> sparse_layers(ConfigReader& reader, std::int64_t layers) {
  std::vector<bool> sparse;
  const Json* types = reader.find_non_null("mlp_layer_types");
  if (types == nullptr) {
    for (std::int64_t layer = 0; layer < layers; ++layer) sparse.push_back(layer > 0);
    return sparse;
  }
  CHECK(types->is_array() && std::ssize(*types) == layers,
        "{}: 'mlp_layer_types' is {}; must be a list of {} names, one per layer", reader.where(), brief(*types),
        layers);
  for (const Json& type : *types) {
    CHECK(type == "dense" || type == "sparse",
          "{}: 'mlp_layer_types' has {} at layer {}; must be \"dense\" or \"sparse\"", reader.where(), brief(type),
          sparse.size());
    sparse.push_back(type == "sparse");
  }
  return sparse;
}

Experts parse_routed(ConfigReader& reader, std::int64_t layers) {
  Experts experts = parse_experts(reader, either(reader, "n_routed_experts", "num_local_experts"), 256, 8);
  experts.width = reader.integer("moe_intermediate_size", 1, max_expert_width, 2048);
  experts.scores = RouterScores::sigmoid;
  experts.router_correction = true;
  experts.router_wide = true;
  experts.normalised = reader.boolean("norm_topk_prob", true);
  if (reader.find_non_null("routed_scaling_factor") != nullptr)
    experts.scale = reader.number("routed_scaling_factor", 1e-6, 1e6);
  experts.group_leaders = 2;
  parse_expert_groups(reader, experts, 1, 1);
  experts.layers = sparse_layers(reader, layers);
  require_value(reader, "scoring_func", "sigmoid", "the router of this family");
  require_value(reader, "topk_method", "noaux_tc", "the router of this family");
  return experts;
}

/// A list that the code beside the published checkpoints reads, and the reference does not: 0 or 1 for each layer.
void require_list(ConfigReader& reader, std::string_view key, const std::vector<bool>& computed, std::string_view why) {
  const Json* found = reader.find_non_null(key);
  if (found == nullptr) return;
  Json list = Json::array();
  for (const bool layer : computed) list.push_back(layer ? 1 : 0);
  CHECK(*found == list, "{}: {} is {}; the reference computes other layers: {}", reader.where(), reader.quoted(key),
        brief(*found), why);
}

DecoderConfig parse(ConfigReader& reader) {
  DecoderConfig config = parse_common(
      reader, {.max_positions = 131072, .kv_heads = 4, .head_dim = 192, .bos_token = 1, .norm_epsilon = 1e-5}, keys);
  check_rotations(reader, config);
  parse_windows(reader, config);
  parse_kinds(reader, config);
  parse_values(reader, config);
  config.experts = parse_routed(reader, config.layers);
  require_list(reader, "hybrid_layer_pattern", config.sink_layers,
               "without 'layer_types' the first and each sixth are global; list them there");
  require_list(reader, "moe_layer_freq", config.experts.layers,
               "without 'mlp_layer_types' all but the first have experts; list them there");
  return config;
}

TensorNames names() {
  TensorNames names;
  names.sink_logit = "self_attn.attention_sink_bias";
  names.router = "mlp.gate";
  names.router_correction = "mlp.gate.e_score_correction_bias";
  name_experts(names);
  return names;
}

/// The reference computes no attention in chunks, and leaves the layers out that predict further tokens.
std::vector<std::string_view> ignored_keys() {
  std::vector<std::string_view> ignored = router_training_keys();
  for (const char* key : {"attention_chunk_size", "num_nextn_predict_layers"}) ignored.emplace_back(key);
  return ignored;
}

}  // namespace mimo_v2_flash_family

Family mimo_v2_flash() {
  using namespace mimo_v2_flash_family;
  return {.name = "mimo_v2_flash",
          .title = "MiMo V2 Flash",
          .examples = "MiMo V2 Flash",
          .classes = {"MiMoV2Flash"},
          .parse = parse,
          .keys = keys,
          .tensors = names(),
          .inert_keys = ignored_keys(),
          .inert_tensors = {"model.mtp."}};
}

}  // namespace gainlens::models
