#include "recommend/hstu.h"

#include "bft/filter_pass.h"
#include "bft/observation_variance.h"
#include "core/check.h"
#include "kernels/gradient/trained_linear.h"
#include "kernels/gradient/trained_loss.h"
#include "kernels/linear/linear.h"

#include <ATen/ATen.h>

#include <utility>

namespace gainlens::recommend {
namespace {

/// Rows of length 1. Those shorter than 1e-6 are divided by it. Source: generative-recommenders,
/// research/modeling/sequential/output_postprocessors.py.
at::Tensor unit_rows(const at::Tensor& rows) {
  return rows / at::linalg_vector_norm(rows, 2, {-1}, /*keepdim=*/true).clamp_min(1e-6);
}

/// What attention found about the weights cannot be changed from outside.
void refuse_replaced_balance(const hooks::Hooks& hooks, std::int64_t layers) {
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const hooks::Site site = hooks::block_site(layer, training::balance_site);
    CHECK(!hooks.replaces(site), "hook {}: shows the weights, and nothing follows from it; replace attn.hook_pattern",
          site.name);
  }
}

}  // namespace

Hstu::Hstu(const HstuConfig& config, HstuWeights weights)
    : PackedBackbone(config.armed_filter(), layout_of(config)), config_(config), weights_(std::move(weights)) {
  check_slots("HSTU", weights_.layers.size());
  if (!config_.attention_norm_weights) {
    const at::TensorOptions like = weights_.item_embedding.options().requires_grad(false);
    const NormWeights none{at::ones({config_.width}, like), at::zeros({config_.width}, like)};
    for (HstuLayerWeights& layer : weights_.layers) layer.attention_norm = layer.attended_norm = none;
  }
  refresh_jacobian();
}

InputPart Hstu::input_part() const {
  return input_part_of(config_, weights_);
}

at::Tensor Hstu::run(const PackedSequences& sequences, const RunOptions& options, const hooks::Hooks& hooks) const {
  if (!hooks.empty()) refuse_replaced_balance(hooks, config_.layers);
  return PackedBackbone::run(sequences, options, hooks);
}

at::Tensor Hstu::finished(const at::Tensor& hidden, const PackedPass& pass) const {
  if (config_.output == HstuOutput::unit) return unit_rows(hidden) / config_.temperature;
  return normed(hidden, weights_.final_norm, config_.norm_epsilon, final_norm_site, pass);
}

at::Tensor Hstu::head() const {
  const at::Tensor embeddings = weights_.item_embedding.narrow(0, 1, config_.items);
  return config_.output == HstuOutput::unit ? unit_rows(embeddings) : embeddings;
}

void Hstu::block(std::int64_t layer, LayerStream& stream, const PackedPass& pass) const {
  const HstuLayerWeights& weights = layer_weights(layer);
  const at::Tensor hidden = stream.hidden = pass.at(layer, "hook_resid_pre", stream.hidden);
  const at::Tensor input = normed(hidden, weights.attention_norm, config_.norm_epsilon,
                                  hooks::block_site(layer, "ln1.hook_normalized"), pass);
  const at::Tensor added = attention(layer, input, stream, pass);
  stream.hidden = query_rows(hidden, pass.last_rows) + pass.at(layer, "hook_attn_out", added);
  if (config_.has_mlp()) {
    const at::Tensor middle = stream.hidden = pass.at(layer, "hook_resid_mid", stream.hidden);
    const at::Tensor fed = fed_forward(filter_,
                                       {.layer = layer,
                                        .last = layer + 1 == config_.layers,
                                        .norm = &weights.mlp_norm,
                                        .own_norm = weights.mlp_norm,
                                        .norm_epsilon = config_.norm_epsilon,
                                        .up = weights.up,
                                        .down = weights.down,
                                        .filter = weights.filter,
                                        .factors = factors_of(layer)},
                                       config_.heads, stream, pass);
    stream.hidden = middle + pass.at(layer, "hook_mlp_out", pass.dropped(fed, layer, mlp_place));
  }
  stream.hidden = pass.at(layer, "hook_resid_post", stream.hidden);
}

kernels::PointwiseAttentionOptions Hstu::attention_options(std::int64_t layer, const PackedPass& pass) const {
  const HstuLayerWeights& weights = layer_weights(layer);
  return {.scale = config_.score_scale == ScoreScale::one ? 1.0 : 0.0,
          .length = static_cast<double>(config_.length()),
          .dropout = pass.dropout(pass.noise.attention_rate, layer, attention_place),
          .place_bias = weights.place_bias,
          .time_bias = weights.time_bias,
          .query_times = pass.times,
          .key_times = pass.times,
          .multiplicative = config_.precision_place == PrecisionPlace::multiplicative,
          .last_queries = pass.last_rows.defined()};
}

kernels::PointwiseMoments Hstu::attended(std::int64_t layer, const hooks::Qkv& heads,
                                         const kernels::PointwiseAttentionOptions& options, bool moments,
                                         const PackedPass& pass) const {
  const hooks::Site site = hooks::block_site(layer, "attn.hook_pattern");
  if (pass.equal_lengths && pass.shows(site)) {
    const at::Tensor pattern =
        pass.hooks.at(site, kernels::pointwise_pattern(heads.query, heads.key, pass.bounds, options));
    if (pass.hooks.replaces(site))
      return kernels::pointwise_moments_of(pattern, heads.value, pass.bounds, options.min_weight_share);
  }
  if (moments) return kernels::pointwise_attention_moments(heads.query, heads.key, heads.value, pass.bounds, options);
  return {kernels::pointwise_attention(heads.query, heads.key, heads.value, pass.bounds, options), {}, {}};
}

at::Tensor Hstu::attention(std::int64_t layer, const at::Tensor& input, LayerStream& stream,
                           const PackedPass& pass) const {
  const HstuLayerWeights& weights = layer_weights(layer);
  const bool fast = input.scalar_type() == at::kFloat;
  const at::Tensor projected =
      at::silu(fast ? kernels::trained_linear(input, weights.uvqk) : at::linear(input, weights.uvqk));
  const auto part = [&](std::int64_t number) { return projected.narrow(1, number * config_.width, config_.width); };
  const auto heads = [&](const at::Tensor& rows, std::string_view site) {
    return pass.at(layer, site, rows.reshape({rows.size(0), config_.heads, config_.head_dim()}));
  };
  const at::Tensor gate = pass.at(layer, "attn.hook_u", query_rows(part(0), pass.last_rows));
  const at::Tensor value = heads(part(1), "attn.hook_v");
  const hooks::Qkv head_inputs{heads(query_rows(part(2), pass.last_rows), "attn.hook_q"), heads(part(3), "attn.hook_k"),
                               value};

  const LayerSites sites(pass, layer);
  bft::FilterPass filter(filter_, weights.filter, sites, stream.filter, {config_.heads, config_.head_dim()});
  const bool moves = stream.filter.precision.defined();
  if (moves) filter.begin();
  const bft::ScoreBiases biases = filter.score_biases();
  kernels::PointwiseAttentionOptions options = attention_options(layer, pass);
  const bft::EstimatorOptions estimator = filter_.options.estimator_options();
  options.key_bias = biases.key;
  options.distance_slope = biases.log_decay;
  options.min_weight_share = estimator.least_weight_share;
  if (moves) stream.filter.precision = query_rows(stream.filter.precision, pass.last_rows);  // keys have read theirs
  const kernels::PointwiseMoments found = attended(layer, head_inputs, options, moves, pass);

  const at::Tensor sum = pass.at(layer, "attn.hook_z", found.output).flatten(1);
  const at::Tensor mean = normed(sum, weights.attended_norm, config_.norm_epsilon,
                                 hooks::block_site(layer, "attn.ln.hook_normalized"), pass);
  at::Tensor added = pass.at(layer, "attn.hook_gated", gate * mean);
  const auto projection = [&] { added = linear(pass.dropped(added, layer, output_place), weights.output); };
  const bool has_output = filter_.has_output_projection();
  const bool before_gain = filter_.gains_in_stream();
  if (before_gain) projection();
  if (moves) {
    pass.at(layer, training::balance_site, found.balance);
    added = filter.update(added, bft::observation_precision(found.variance, estimator), {});
  } else {
    added = filter.scaled(added, query_rows(input, pass.last_rows));
  }
  if (has_output && !before_gain) projection();
  return has_output ? added : pass.dropped(added, layer, output_place);
}

hooks::Stream Hstu::forward(const hooks::Tokens& tokens, const hooks::ForwardOptions& options,
                            const hooks::Hooks& hooks) {
  CHECK(!config_.time_bias,
        "items: this model reads the time of each interaction, and ids alone have none; train one with --no-time-bias");
  check_ids(tokens, options, hooks);
  refuse_replaced_balance(hooks, config_.layers);
  CHECK(options.attention == nullptr,
        "attention: the weights of backbone {} are no softmax; another attention operation cannot stand in for its own",
        hstu_name);
  return forward_ids(tokens, options, hooks);
}

at::Tensor Hstu::unembed(const at::Tensor& normalized) {
  return id_scores(normalized, at::constant_pad_nd(head(), {0, 0, 1, 0}), config_.items);
}

at::Tensor Hstu::target_losses(const at::Tensor& normalized, const at::Tensor& targets) {
  return kernels::target_losses(normalized, kernels::PackedWeight(head()), targets - 1);
}

std::vector<hooks::SiteShape> hstu_sites(const HstuConfig& config) {
  const bft::Filter filter = config.armed_filter();
  const auto [stream, heads, neurons, pattern, head_numbers] = site_shapes_of(config);
  std::vector<hooks::SiteShape> sites{{embed_site, stream}, {position_site, stream}};
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const auto add = [&](std::string_view rest, const std::vector<std::string>& shape, bool on_request = false) {
      sites.push_back({hooks::block_site(layer, rest), shape, on_request});
    };
    add("hook_resid_pre", stream);
    add("ln1.hook_normalized", stream);
    add("attn.hook_u", stream);
    for (const char* rest : {"attn.hook_v", "attn.hook_q", "attn.hook_k"}) add(rest, heads);
    if (filter.has_gain()) add(bft::precision_site, stream);
    add("attn.hook_pattern", pattern, true);
    add("attn.hook_z", heads);
    add("attn.ln.hook_normalized", stream);
    add("attn.hook_gated", stream);
    if (filter.has_gain()) {
      add(training::balance_site, head_numbers);
      add(bft::observation_site, heads);
    }
    if (filter.parts().factor != bft::AttentionFactor::one) add(bft::gain_site, heads);
    add("hook_attn_out", stream);
    if (config.has_mlp()) {
      for (const char* rest : {"hook_resid_mid", "ln2.hook_normalized"}) add(rest, stream);
      add("mlp.hook_pre", neurons);
      if (filter.has_jacobian() && layer + 1 < config.layers) add(bft::stretch_site, stream);
      add("mlp.hook_post", neurons);
      add("hook_mlp_out", stream);
    }
    add("hook_resid_post", stream);
  }
  if (config.output == HstuOutput::norm) sites.push_back({final_norm_site, stream});
  sites.push_back({hooks::logits_site(), {"batch", "position", std::to_string(config.ids())}, true});
  return sites;
}

}  // namespace gainlens::recommend
