#include "core/check.h"
#include "models/families/common_keys.h"
#include "models/families/family.h"

#include <algorithm>

namespace gainlens::models {
namespace lfm_family {

constexpr std::int64_t max_kernel = 1 << 10;

// The activation is silu; no key names it.
constexpr CommonKeys keys_of(std::string_view mlp_width, std::string_view head_dim, RopeKeys rope) {
  return {.mlp_width = mlp_width, .head_dim = head_dim, .activation = "", .norm_epsilon = "norm_eps", .rope = rope};
}

constexpr CommonKeys second_keys = keys_of("intermediate_size", "head_dim", {.default_base = 1e6});
constexpr CommonKeys third_keys =
    keys_of("intermediate_size", "head_dim", {.rotated = "partial_rotary_factor", .by_window = true});

/// The kinds of the layers by `layer_types`. Empty without this key.
std::vector<std::string> kinds_of_layers(ConfigReader& reader, std::int64_t layers, bool windows) {
  const Json* types = reader.find_non_null("layer_types");
  if (types == nullptr) return {};
  CHECK(types->is_array() && std::ssize(*types) == layers,
        "{}: 'layer_types' is {}; must be a list of {} names, one per layer", reader.where(), brief(*types), layers);
  std::vector<std::string> kinds;
  for (const Json& type : *types) {
    CHECK(type == "conv" || type == "full_attention" || (windows && type == "sliding_attention"),
          "{}: 'layer_types' has {} at layer {}; must be \"conv\"{} or \"full_attention\"", reader.where(), brief(type),
          kinds.size(), windows ? ", \"sliding_attention\"" : "");
    kinds.push_back(type.get<std::string>());
  }
  return kinds;
}

ConvolutionLayers convolutions(ConfigReader& reader, const std::vector<std::string>& kinds, std::int64_t kernel) {
  ConvolutionLayers found;
  for (const std::string& kind : kinds) found.layers.push_back(kind == "conv");
  found.kernel = reader.integer("conv_L_cache", 1, max_kernel, kernel);
  found.bias = reader.boolean("conv_bias", false);
  if (std::ranges::find(found.layers, true) == found.layers.end()) found.layers.clear();
  return found;
}

/// The kinds of layers without `layer_types`: `full_attn_idxs` lists the layers that attend; without both, all do.
std::vector<std::string> kinds_by_index(ConfigReader& reader, std::int64_t layers) {
  const Json* listed = reader.find_non_null("full_attn_idxs");
  std::vector<std::string> kinds = kinds_of_layers(reader, layers, /*windows=*/false);
  if (!kinds.empty()) return kinds;
  kinds.assign(static_cast<std::size_t>(layers), listed == nullptr ? "full_attention" : "conv");
  if (listed == nullptr) return kinds;
  CHECK(listed->is_array(), "{}: 'full_attn_idxs' is {}; must be a list of layers", reader.where(), brief(*listed));
  for (const Json& layer : *listed) {
    CHECK(layer.is_number_integer() && layer >= 0 && layer < layers,
          "{}: 'full_attn_idxs' holds {}; each must be a layer, 0 to {}", reader.where(), brief(layer), layers - 1);
    kinds[layer.get<std::size_t>()] = "full_attention";
  }
  return kinds;
}

/// The width of the MLP, which the reference derives from what the file says.
std::int64_t adjusted_width(ConfigReader& reader, std::int64_t stated) {
  const bool adjusts = reader.boolean("block_auto_adjust_ff_dim", true);
  const std::int64_t multiple = reader.integer("block_multiple_of", 1, 1 << 20, 256);
  const Json* factor = reader.find("block_ffn_dim_multiplier");
  const bool scales = factor == nullptr || !factor->is_null();
  const double multiplier = scales ? reader.number("block_ffn_dim_multiplier", 1e-6, 1e6, 1) : 1;
  if (!adjusts) return stated;
  const std::int64_t share = 2 * stated / 3;
  if (!scales) return share;
  const auto scaled = static_cast<std::int64_t>(multiplier * static_cast<double>(share));
  return (scaled + multiple - 1) / multiple * multiple;
}

DecoderConfig parse_second(ConfigReader& reader) {
  CommonKeys keys = second_keys;
  // Older files have names of their own, which come first.
  keys.mlp_width = reader.find_non_null("block_ff_dim") != nullptr ? "block_ff_dim" : "intermediate_size";
  reader.find("intermediate_size");
  const bool tied = reader.boolean("tie_embedding", true);
  DecoderConfig config = parse_common(
      reader, {.max_positions = 128000, .kv_heads = 8, .bos_token = 1, .norm_epsilon = 1e-5, .tied_head = tied}, keys);
  if (reader.find_non_null("tie_embedding") != nullptr) config.tied_head = tied;
  require_value(reader, "theta", config.rope.base, "the base of the rotary embedding, as 'rope_theta'");
  config.mlp_width = adjusted_width(reader, config.mlp_width);
  CHECK(config.mlp_width > 0, "{}: the MLP has no neurons after 'block_auto_adjust_ff_dim'", reader.where());
  config.qk_norm = QkNorm::head;
  config.convolution = convolutions(reader, kinds_by_index(reader, config.layers), 3);
  return config;
}

/// The rotary embeddings of a file that names none.
void rotate_as_published(DecoderConfig& config) {
  config.rope = {.base = 1e6, .rotated = 0.5, .scaling = RopeScaling::proportional};
  config.window_rope = RopeConfig{.base = 10000};
}

bool has_both_rotations(ConfigReader& reader) {
  const Json& parameters = *reader.find_non_null("rope_parameters");
  return parameters.contains("full_attention") && parameters.contains("sliding_attention");
}

void check_rotation(const ConfigReader& reader, const RopeConfig& rope) {
  CHECK(rope.rotated == 1 || rope.scaling != RopeScaling::none,
        "{}: 'partial_rotary_factor' is {} beside rope_type default; the reference rotates whole heads there: give "
        "rope_type proportional, or no factor",
        reader.where(), rope.rotated);
}

DecoderConfig parse_third(ConfigReader& reader) {
  DecoderConfig config = parse_common(reader,
                                      {.max_positions = 128000,
                                       .kv_heads = 4,
                                       .head_dim = 128,
                                       .bos_token = 124894,
                                       .norm_epsilon = 1e-5,
                                       .tied_head = true},
                                      third_keys);
  if (reader.find_non_null("rope_parameters") == nullptr) {
    for (const char* key : {"rope_theta", "rope_scaling", "partial_rotary_factor"})
      require_value(reader, key, nullptr,
                    "this family reads 'rope_parameters', with one object for each kind of layer");
    rotate_as_published(config);
  } else {
    CHECK(config.window_rope || has_both_rotations(reader),
          "{}: 'rope_parameters' is {}; must have one object for each kind of layer, 'full_attention' and "
          "'sliding_attention'",
          reader.where(), brief(*reader.find_non_null("rope_parameters")));
  }
  check_rotation(reader, config.rope);
  if (config.window_rope) check_rotation(reader, *config.window_rope);
  std::vector<std::string> kinds = kinds_of_layers(reader, config.layers, /*windows=*/true);
  for (std::int64_t layer = std::ssize(kinds); layer < config.layers; ++layer)
    kinds.emplace_back(layer % 4 == 2 ? "full_attention" : layer % 4 == 0 && layer > 0 ? "sliding_attention" : "conv");
  const std::int64_t window = parse_window(reader, 256);
  for (std::size_t layer = 0; layer < kinds.size(); ++layer) {
    if (kinds[layer] != "sliding_attention") continue;
    CHECK(window > 0, "{}: layer {} is of \"sliding_attention\", but sliding_window is null; set it", reader.where(),
          layer);
    config.window[layer] = window;
  }
  config.convolution = convolutions(reader, kinds, 7);
  config.post_norm = reader.boolean("use_sandwich_norm", true);
  config.qk_norm = QkNorm::head;
  if (reader.boolean("use_attention_gate", true)) config.gate = Gate::headwise;
  require_value(reader, "attention_bias", false, "the projections of this family have no biases");
  return config;
}

TensorNames names() {
  TensorNames names;
  names.final_norm = "embedding_norm";
  names.attention_norm = "operator_norm";
  names.convolution_projection = "conv.in_proj";
  names.convolution = "conv.conv";
  names.convolution_output = "conv.out_proj";
  names.mlp_norm = "ffn_norm";
  names.mlp_gate = "feed_forward.w1";
  names.mlp_up = "feed_forward.w3";
  names.mlp_down = "feed_forward.w2";
  return names;
}

TensorNames second_names() {
  TensorNames second = names();
  second.query_norm = "self_attn.q_layernorm";
  second.key_norm = "self_attn.k_layernorm";
  second.output = "self_attn.out_proj";
  return second;
}

TensorNames third_names() {
  TensorNames third = names();
  third.gate_score = "self_attn.gate_proj";
  third.attention_post_norm = "post_operator_norm";
  third.mlp_post_norm = "post_ffn_norm";
  return third;
}

}  // namespace lfm_family

Family lfm2() {
  using namespace lfm_family;
  return {.name = "lfm2",
          .title = "LFM2",
          .examples = "LFM2 350M, 700M, 1.2B and 2.6B",
          .classes = {"Lfm2"},
          .parse = parse_second,
          .keys = second_keys,
          .tensors = second_names()};
}

Family lfm3() {
  using namespace lfm_family;
  return {.name = "lfm3",
          .title = "LFM3",
          .examples = "LFM3 1.7B",
          .classes = {"Lfm3"},
          .parse = parse_third,
          .keys = third_keys,
          .tensors = third_names()};
}

}  // namespace gainlens::models
