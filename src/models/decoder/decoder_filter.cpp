#include "bft/filter_step.h"
#include "bft/fused_step.h"
#include "bft/initial_precision.h"
#include "bft/observation_variance.h"
#include "core/check.h"
#include "models/all_finite.h"
#include "models/decoder/attention_ops.h"
#include "models/decoder/decoder_pass.h"
#include "models/decoder/norm.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

// The Bayesian filter of a decoder. Its steps run in float32, or float64 for weights in float64.

namespace gainlens::models {
namespace {

/// In the type of the filter's steps; undefined stays undefined.
at::Tensor wide(const at::Tensor& weight) {
  return weight.defined() ? widened(weight) : weight;
}

/// @throws RunFailed  names the layer
void refuse_nan(const at::Tensor& precision, std::int64_t layer) {
  if (!all_finite(precision)) throw_run_failed("forward: a precision is NaN or infinite, first in layer {}", layer);
}

/// tau of each token, [batch, position].
at::Tensor token_precision(const bft::FilterOptions& filter, const TokenPrecisionWeights& weights,
                           const at::Tensor& ids, const at::Tensor& embedded) {
  at::Tensor found;
  if (filter.initial_precision == bft::InitialPrecision::table) {
    found = bft::table_precision(wide(weights.table).index_select(0, ids.flatten()));
  } else {
    const bft::PrecisionNetwork network{wide(weights.network.hidden), wide(weights.network.hidden_bias),
                                        wide(weights.network.output), wide(weights.network.output_bias)};
    const at::Tensor rows = widened(embedded).flatten(0, 1);
    found = bft::content_precision(network, rows, at::ones({rows.size(0)}, rows.options().requires_grad(false)),
                                   wide(weights.range));
  }
  return found.clamp(filter.least_precision, filter.most_precision).view(ids.sizes());
}

}  // namespace

void Decoder::start_filter(WeightUse use) {
  const double strength = weights_.precision.strength.item<double>();
  CHECK(strength >= 0 && strength <= 1, "filter: 'precision.strength' is {}; must be 0 to 1", strength);
  if (use == WeightUse::trained || !config_.filter->running_jacobian) refresh_jacobian();
}

void Decoder::refresh_jacobian() {
  if (!config_.has_filter_jacobian() || config_.filter->jacobian != bft::JacobianForm::low_rank) return;
  const at::NoGradGuard no_gradients;
  factors_.clear();
  for (std::size_t layer = 0; layer + 1 < layers_.size(); ++layer) factors_.push_back(factors_of(layers_[layer]));
}

std::vector<bft::JacobianFactors> Decoder::factors_of(const Layer& weights) const {
  const LayerProjections& mlp = weights.projections;
  const at::Tensor down = wide(mlp.mlp_down.weight());
  std::vector<bft::JacobianFactors> factors;
  if (config_.gated_mlp)
    factors.push_back(bft::jacobian_factors(wide(mlp.mlp_gate.weight()), down, config_.filter->jacobian_rank));
  factors.push_back(bft::jacobian_factors(wide(mlp.mlp_up.weight()), down, config_.filter->jacobian_rank));
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
  pass.strength = weights_.precision.strength.item<double>();
  if (pass.strength == 0) return;
  pass.precision =
      token_precision(*config_.filter, weights_.precision, ids, embedded).unsqueeze(2).expand({-1, -1, config_.width});
}

hooks::ObservedAttention Decoder::observed(const Layer& weights, std::int64_t layer, const hooks::Qkv& qkv,
                                           const Pass& pass) const {
  const kernels::AttentionOptions options = attention_options(layer, pass);
  hooks::PrecisionBias bias{.key = pass.precision.mean(-1).log() * pass.strength};
  if (weights.rest.filter.recency.defined())
    bias.log_decay = at::log_sigmoid(wide(weights.rest.filter.recency)) * pass.strength;
  const hooks::Site site = hooks::block_site(layer, "attn.hook_pattern");
  if (pass.hooks.replaces(site))
    return observed_by_pattern(pass.hooks.at(site, attention_pattern(qkv, options, bias)), qkv.value);
  hooks::ObservedAttention found = pass.attention.run_with_moments(layer, qkv, options, bias);
  if (pass.hooks.wants(site)) pass.hooks.at(site, attention_pattern(qkv, options, bias));
  return found;
}

at::Tensor Decoder::filtered_values(const Layer& weights, std::int64_t layer, const hooks::Qkv& qkv, Pass& pass) const {
  const bft::FilterOptions& filter = *config_.filter;
  pass.precision = pass.at(layer, "hook_precision", pass.precision);
  refuse_nan(pass.precision, layer);
  const hooks::ObservedAttention found = observed(weights, layer, qkv, pass);
  const at::Tensor estimate = pass.at(layer, "attn.hook_z", found.output.transpose(1, 2));
  const at::Tensor residual = found.residual.transpose(1, 2);  // [batch, position, head, head_dim]
  const at::Tensor n_eff = found.n_eff.transpose(1, 2);        // [batch, position, head]
  // In training alone: the bits of the fused step are not those of the separate ones, which hooks can see.
  if (pass.request.options.training && bft::fits_fused_steps(pass.precision) && bft::fits_fused_steps(estimate) &&
      bft::has_fused_update(filter)) {
    const auto rows = [](const at::Tensor& t) { return t.reshape({t.size(0) * t.size(1), -1}); };
    auto [scaled, posterior] =
        bft::fused_update({rows(estimate), rows(n_eff), rows(residual)}, rows(pass.precision), filter, pass.strength);
    pass.precision = posterior.view(pass.precision.sizes());
    return scaled.view(estimate.sizes());
  }
  const bft::EstimatorOptions options = filter.estimator_options();
  const at::Tensor variance =
      bft::variance_of_moments(filter.estimator, n_eff.unsqueeze(3), residual, options, config_.head_dim);
  const at::Tensor observation =
      pass.at(layer, "attn.hook_observation_precision", bft::observation_precision(variance, options));
  refuse_nan(observation, layer);
  const at::Tensor prior = pass.precision.reshape(observation.sizes());
  const at::Tensor gain = pass.at(layer, "attn.hook_gain", bft::gain(prior, observation));
  pass.precision = bft::posterior_precision(pass.precision, observation.flatten(2), filter);
  const at::Tensor factor = pass.strength < 1 ? 1 + pass.strength * (gain - 1) : gain;
  return (estimate * factor).to(estimate.scalar_type());
}

at::Tensor Decoder::jacobian(const Layer& weights, std::int64_t layer, const PreActivations& seen) const {
  const LayerProjections& mlp = weights.projections;
  const at::Tensor gates = wide(seen.gates), neurons = wide(seen.neurons);
  const kernels::Activation activation = config_.activation;
  if (config_.filter->jacobian == bft::JacobianForm::low_rank) {
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
  const bft::FilterOptions& filter = *config_.filter;
  const FilterWeights& own = weights.rest.filter;
  const bool predicts = layer + 1 < config_.layers;  // no layer reads the precision after the last one
  const bool of_tokens =
      predicts && config_.has_filter_jacobian() && (pass.request.options.training || !filter.running_jacobian);
  const bool adds = adds_in_product(hooks::block_site(layer, "hook_mlp_out"), pass);
  PreActivations seen;
  at::Tensor hidden = dense_feedforward(config_, weights.projections, layer, input, adds ? residual : at::Tensor(),
                                        pass.hooks, of_tokens ? &seen : nullptr);
  if (!adds) hidden = residual + pass.at(layer, "hook_mlp_out", hidden);
  if (predicts) {
    at::Tensor stretch = of_tokens ? bft::stretch(jacobian(weights, layer, seen)) : wide(own.stretch);
    if (stretch.defined())
      stretch = pass.at(layer, "mlp.hook_stretch", of_tokens ? stretch : stretch.expand_as(pass.precision));
    const at::Tensor parameter = wide(filter.predict == bft::Predict::decay ? own.decay : own.process_noise);
    pass.precision = bft::predicted_precision(pass.precision, stretch, parameter, filter);
  }
  return pass.at(layer, "hook_resid_post", hidden);
}

}  // namespace gainlens::models
