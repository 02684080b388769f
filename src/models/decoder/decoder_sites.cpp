#include "models/decoder/decoder_sites.h"

#include <string>

namespace gainlens::models {
namespace {

using Shape = std::vector<std::string>;

/// [batch, position, sizes...]
Shape per_position(std::initializer_list<std::int64_t> sizes) {
  Shape shape{"batch", "position"};
  for (const std::int64_t size : sizes) shape.push_back(std::to_string(size));
  return shape;
}

/// Where the gain of a filter acts.
void add_gain_sites(const DecoderConfig& config, std::int64_t layer, std::vector<hooks::SiteShape>& sites) {
  const bft::Filter filter = config.armed_filter();
  const Shape heads = per_position({config.heads, config.value_dim()});
  const bool as_stream = filter.gains_in_stream() && config.heads * config.value_dim() != config.width;
  const auto add = [&](std::string_view name, const Shape& shape) {
    sites.push_back({hooks::block_site(layer, name), shape});
  };
  if (filter.has_gain()) add("attn.hook_observation_precision", heads);
  if (filter.parts().factor != bft::AttentionFactor::one)
    add("attn.hook_gain", as_stream ? per_position({config.width}) : heads);
}

void add_attention_sites(const DecoderConfig& config, std::int64_t layer, std::vector<hooks::SiteShape>& sites) {
  const auto add = [&](std::string_view name, Shape shape, bool on_request = false) {
    sites.push_back({hooks::block_site(layer, name), std::move(shape), on_request});
  };
  const Shape queries = per_position({config.heads, config.head_dim});
  const std::int64_t kv_heads = config.kv_heads_of(layer);
  const Shape keys = per_position({kv_heads, config.head_dim});
  const Shape outputs = per_position({config.heads, config.value_dim()});
  add("attn.hook_q", queries);
  add("attn.hook_k", keys);
  add("attn.hook_v", per_position({kv_heads, config.value_dim()}));
  if (config.rotates(layer)) {
    add("attn.hook_rot_q", queries);
    add("attn.hook_rot_k", keys);
  }
  const bft::Filter filter = config.armed_filter();
  if (filter.has_gain()) add("hook_precision", per_position({config.width}));
  add("attn.hook_pattern", {"batch", std::to_string(config.heads), "position", "position"}, /*on_request=*/true);
  add("attn.hook_z", outputs);
  if (!filter.gains_in_stream()) add_gain_sites(config, layer, sites);
  if (config.gate == Gate::headwise) add("attn.hook_gate", per_position({config.heads}));
  if (config.gate == Gate::elementwise) add("attn.hook_gate", outputs);
  add("attn.hook_result", per_position({config.heads, config.width}), /*on_request=*/true);
}

}  // namespace

std::vector<hooks::SiteShape> decoder_sites(const DecoderConfig& config) {
  const Shape stream = per_position({config.width});
  const Shape neurons = per_position({config.mlp_width});
  std::vector<hooks::SiteShape> sites{{hooks::Site{"hook_embed"}, stream}};
  if (config.positions == Positions::learned) sites.push_back({hooks::Site{"hook_pos_embed"}, stream});
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const auto add = [&](std::string_view name, const Shape& shape) {
      sites.push_back({hooks::block_site(layer, name), shape});
    };
    add("hook_resid_pre", stream);
    if (config.pre_norm) add("ln1.hook_normalized", stream);
    if (config.attends(layer)) add_attention_sites(config, layer, sites);
    if (config.post_norm) add("ln1_post.hook_normalized", stream);
    if (config.armed_filter().gains_in_stream()) add_gain_sites(config, layer, sites);
    add("hook_attn_out", stream);
    if (!config.parallel_residual) add("hook_resid_mid", stream);
    if (config.pre_norm && !config.shared_norm) add("ln2.hook_normalized", stream);
    if (config.has_experts(layer)) {
      add("mlp.hook_expert_weights", per_position({config.experts.count}));
    } else {
      add("mlp.hook_pre", neurons);
      if (config.gated_mlp) add("mlp.hook_pre_linear", neurons);
      add("mlp.hook_post", neurons);
    }
    if (config.post_norm) add("ln2_post.hook_normalized", stream);
    add("hook_mlp_out", stream);
    if (config.armed_filter().has_jacobian() && layer + 1 < config.layers) add("mlp.hook_stretch", stream);
    add("hook_resid_post", stream);
  }
  sites.push_back({hooks::Site{"ln_final.hook_normalized"}, stream});
  sites.push_back({hooks::logits_site(), per_position({config.vocabulary}), /*on_request=*/true});
  return sites;
}

}  // namespace gainlens::models
