#include "bft/filter_pass.h"
#include "core/check.h"
#include "models/all_finite.h"
#include "models/decoder/attention_ops.h"
#include "models/decoder/decoder_pass.h"
#include "models/decoder/filter_config.h"
#include "models/decoder/norm.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

// What a decoder gives its filter: attention with moments, and the diagonal of the Jacobian. The filter's steps run in
// float32, or float64 for weights in float64.

namespace gainlens::models {
namespace {

at::Tensor wide(const at::Tensor& weight) {
  return bft::in_filter_type(weight);
}

/// Positions of all sequences as rows: [batch, position, ..] becomes [row, ..].
at::Tensor as_rows(const at::Tensor& x) {
  return x.flatten(0, 1);
}

/// [batch, head, position, ..] as rows.
at::Tensor rows_of_heads(const at::Tensor& x) {
  return x.transpose(1, 2).flatten(0, 1);
}

}  // namespace

at::Tensor Decoder::LayerSites::at(std::string_view site, const at::Tensor& rows) const {
  const at::Tensor& ids = pass_.request.tokens->ids;
  at::Tensor found = rows;
  if (const hooks::Site place = hooks::block_site(layer_, site); pass_.hooks.wants(place))
    found = as_rows(pass_.hooks.at(place, rows.unflatten(0, {ids.size(0), ids.size(1)})));
  if ((site == bft::precision_site || site == bft::observation_site) && !all_finite(found))
    throw_run_failed("forward: a precision is NaN or infinite, first in layer {}", layer_);
  return found;
}

void Decoder::start_filter(WeightUse use) {
  if (!filter_.has_initial_precision()) return;
  const double strength = weights_.precision.strength.item<double>();
  CHECK(strength >= 0 && strength <= 1, "filter: 'precision.strength' is {}; must be 0 to 1", strength);
  if (use == WeightUse::trained || !filter_.has_running_jacobian()) refresh_jacobian();
}

void Decoder::follow_filter(const bft::FilterOptions& options, double range) {
  CHECK(!config_.filter, "follow_filter: the decoder has a filter of its own");
  ASSERT(range > 0, "follow_filter: tau_range is {}; must be above 0", range);
  DecoderConfig config = config_;
  config.filter = options;
  config.filter->running_jacobian = false;  // there was no training to take a mean of
  check_filter(config, "follow_filter");
  CHECK(config.heads * config.head_dim == config.width,
        "follow_filter: {} heads of {} dimensions with a stream of {}; a precision is followed where both are as wide",
        config.heads, config.head_dim, config.width);
  const auto start = [&](const std::vector<bft::FilterSlot>& slots, auto& weights) {
    const auto tensors = bft::tensors_by_name(weights);
    for (const bft::FilterSlot& slot : slots)
      *tensors.at(slot.name) = at::full(slot.shape, slot.start.value_or(0), like_.dtype(at::kFloat));
  };
  bft::InitialPrecisionWeights precision;
  start(token_precision_slots(config), precision);
  if (precision.range.defined()) precision.range.fill_(range);
  followed_.resize(static_cast<std::size_t>(config.layers));
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    start(filter_slots(config, layer), followed_[static_cast<std::size_t>(layer)]);
  weights_.precision = precision;
  config_ = std::move(config);
  filter_ = config_.armed_filter();
  refresh_jacobian();
}

void Decoder::refresh_jacobian() {
  if (!filter_.has_jacobian() || filter_.options.jacobian != bft::JacobianForm::low_rank) return;
  const at::NoGradGuard no_gradients;
  factors_.clear();
  for (std::size_t layer = 0; layer + 1 < layers_.size(); ++layer) factors_.push_back(factors_of(layers_[layer]));
}

std::vector<bft::JacobianFactors> Decoder::factors_of(const Layer& weights) const {
  const LayerProjections& mlp = weights.projections;
  const at::Tensor down = wide(mlp.mlp_down.weight());
  std::vector<bft::JacobianFactors> factors;
  if (config_.gated_mlp)
    factors.push_back(bft::jacobian_factors(wide(mlp.mlp_gate.weight()), down, filter_.options.jacobian_rank));
  factors.push_back(bft::jacobian_factors(wide(mlp.mlp_up.weight()), down, filter_.options.jacobian_rank));
  return factors;
}

std::vector<double> Decoder::jacobian_energy() const {
  std::vector<double> kept;
  for (const auto& factors : factors_) {
    kept.push_back(1);
    for (const bft::JacobianFactors& factor : factors) kept.back() = std::min(kept.back(), factor.kept);
  }
  return kept;
}

void Decoder::begin_filter(Pass& pass, const at::Tensor& ids, const at::Tensor& embedded) const {
  const at::Tensor& strength = weights_.precision.strength;
  const double share = strength.defined() ? strength.item<double>() : 1;
  if (share == 0) bft::refuse_idle_interventions(filter_, pass.hooks, config_.layers);
  bft::PriorPrecision prior;
  if (filter_.has_initial_precision() && share > 0)
    prior = bft::prior_precision(filter_.options, weights_.precision, ids.flatten(), as_rows(embedded));
  pass.filter = bft::first_state(filter_, prior, weights_.precision.range, share, config_.width);
  pass.filter.mode = followed_.empty() ? bft::FilterMode::act : bft::FilterMode::follow;
  // In training alone: the bits of the fused steps are not those of the separate ones.
  pass.filter.fused = pass.request.options.training;
  pass.filter.stretch_sums = pass.request.options.stretch_sums;
}

const bft::FilterWeights& Decoder::filter_weights(const Layer& weights, std::int64_t layer) const {
  return followed_.empty() ? weights.rest.filter : followed_[static_cast<std::size_t>(layer)];
}

bool Decoder::filters(const Pass& pass) const {
  return pass.filter.precision.defined() || (filter_.arm != bft::Arm::plain && !filter_.has_gain());
}

hooks::ObservedAttention Decoder::observed(std::int64_t layer, const hooks::Qkv& qkv, const bft::ScoreBiases& biases,
                                           const Pass& pass) const {
  const kernels::AttentionOptions options = attention_options(layer, pass);
  hooks::PrecisionBias bias{.log_decay = biases.log_decay};
  if (biases.key.defined()) bias.key = biases.key.view({qkv.query.size(0), qkv.query.size(2)});
  const hooks::Site site = hooks::block_site(layer, "attn.hook_pattern");
  if (pass.hooks.replaces(site))
    return observed_by_pattern(pass.hooks.at(site, attention_pattern(qkv, options, bias)), qkv.value);
  hooks::ObservedAttention found = pass.attention.run_with_moments(layer, qkv, options, bias);
  if (pass.hooks.wants(site)) pass.hooks.at(site, attention_pattern(qkv, options, bias));
  return found;
}

bool Decoder::gains_in_stream(const Pass& pass) const {
  return filters(pass) && pass.filter.mode == bft::FilterMode::act && filter_.gains_in_stream();
}

at::Tensor Decoder::gained(const Layer& weights, std::int64_t layer, const at::Tensor& attended,
                           const at::Tensor& input, Pass& pass) const {
  const LayerSites sites(pass, layer);
  bft::FilterPass filter(filter_, filter_weights(weights, layer), sites, pass.filter,
                         {config_.heads, config_.head_dim});
  const at::Tensor rows = as_rows(attended);
  if (!pass.filter.precision.defined()) return filter.scaled(rows, as_rows(input)).view(attended.sizes());
  bft::ObservedMoments observed = std::exchange(pass.observed, {});
  observed.estimate = rows;
  return filter.update(observed, {}).view(attended.sizes());
}

at::Tensor Decoder::filtered_values(const Layer& weights, std::int64_t layer, const at::Tensor& input,
                                    Pass& pass) const {
  if (pass.filter.mode == bft::FilterMode::follow) return followed_values(weights, layer, input, pass);
  const hooks::Qkv qkv = projected(weights, layer, input, pass);
  const LayerSites sites(pass, layer);
  bft::FilterPass filter(filter_, filter_weights(weights, layer), sites, pass.filter,
                         {config_.heads, config_.head_dim});
  const bool moves = pass.filter.precision.defined();
  if (moves) filter.begin();
  const hooks::ObservedAttention found = observed(layer, qkv, filter.score_biases(), pass);
  const at::Tensor estimate = pass.at(layer, "attn.hook_z", found.output.transpose(1, 2));
  const at::Tensor rows = as_rows(estimate).flatten(1);
  const auto moments = [&] {
    return bft::ObservedMoments{rows, rows_of_heads(found.n_eff), rows_of_heads(found.residual).flatten(1)};
  };
  if (filter_.gains_in_stream()) {
    if (moves) pass.observed = moments();
    return estimate;
  }
  const at::Tensor scaled = moves ? filter.update(moments(), {}) : filter.scaled(rows, as_rows(input));
  return scaled.view(estimate.sizes());
}

/// The attention of the plain layer, with the precision that goes along.
at::Tensor Decoder::followed_values(const Layer& weights, std::int64_t layer, const at::Tensor& input,
                                    Pass& pass) const {
  const hooks::Qkv qkv = projected(weights, layer, input, pass);
  const LayerSites sites(pass, layer);
  bft::FilterPass filter(filter_, filter_weights(weights, layer), sites, pass.filter,
                         {config_.heads, config_.head_dim});
  filter.begin();
  const at::Tensor plain = weighted_values(weights.rest.sink_logit, layer, qkv, pass);
  const at::Tensor estimate = pass.at(layer, "attn.hook_z", plain.transpose(1, 2));
  UsualAttention moments;
  const hooks::ObservedAttention found = moments.run_with_moments(layer, qkv, attention_options(layer, pass), {});
  filter.update({as_rows(estimate).flatten(1), rows_of_heads(found.n_eff), rows_of_heads(found.residual).flatten(1)},
                {});
  return estimate;
}

at::Tensor Decoder::jacobian(const Layer& weights, std::int64_t layer, const PreActivations& seen) const {
  const LayerProjections& mlp = weights.projections;
  const at::Tensor gates = wide(seen.gates), neurons = wide(seen.neurons);
  const kernels::Activation activation = config_.activation;
  if (filter_.options.jacobian == bft::JacobianForm::low_rank) {
    const auto index = static_cast<std::size_t>(layer);
    const std::vector<bft::JacobianFactors> factors = index < factors_.size() ? factors_[index] : factors_of(weights);
    return config_.gated_mlp ? bft::gated_jacobian(factors[0], factors[1], gates, neurons, activation)
                             : bft::jacobian(factors[0], bft::activation_slope(neurons, activation));
  }
  const at::Tensor up = wide(mlp.mlp_up.weight()), down = wide(mlp.mlp_down.weight());
  return config_.gated_mlp ? bft::gated_jacobian(wide(mlp.mlp_gate.weight()), up, down, gates, neurons, activation)
                           : bft::jacobian(up, down, bft::activation_slope(neurons, activation));
}

at::Tensor Decoder::filtered_feedforward(const Layer& weights, std::int64_t layer, const at::Tensor& input,
                                         const at::Tensor& residual, Pass& pass) const {
  const bool predicts = layer + 1 < config_.layers;  // no layer reads the precision after the last one
  const bool needs_tokens =
      predicts && filter_.has_jacobian() && (pass.request.options.training || !filter_.options.running_jacobian);
  const bool follows = pass.filter.mode == bft::FilterMode::follow;
  const bool adds = adds_in_product(hooks::block_site(layer, "hook_mlp_out"), pass);
  PreActivations seen;
  at::Tensor factor;  // of what the MLP gives on its way to the stream; undefined: 1
  // What is followed must not change the products: the pre-activations are computed beside them.
  at::Tensor hidden = dense_feedforward(config_, weights.projections, layer, input, adds ? residual : at::Tensor(),
                                        pass.hooks, needs_tokens && !follows ? &seen : nullptr);
  if (needs_tokens && follows) seen = pre_activations(config_, weights.projections, input);
  if (!adds) {
    if (config_.post_norm) {
      const at::Tensor& norm_weight = weights.rest.mlp_post_norm;
      if (needs_tokens)
        factor = norm_factor(hidden, config_.norm, config_.norm_epsilon, norm_weight, config_.norm_offset);
      hidden = normed(hidden, norm_weight, {}, hooks::block_site(layer, "ln2_post.hook_normalized"), pass);
    }
    if (config_.residual_scale != 1) hidden = hidden * config_.residual_scale;
    hidden = residual + pass.at(layer, "hook_mlp_out", hidden);
  }
  if (predicts) {
    const LayerSites sites(pass, layer);
    bft::FilterPass filter(filter_, filter_weights(weights, layer), sites, pass.filter,
                           {config_.heads, config_.head_dim});
    at::Tensor slope;
    if (needs_tokens) {
      slope = jacobian(weights, layer, seen) * config_.residual_scale;
      if (factor.defined()) slope = slope * factor;
      slope = as_rows(slope);
    }
    filter.predict(slope);
  }
  return pass.at(layer, "hook_resid_post", hidden);
}

}  // namespace gainlens::models
