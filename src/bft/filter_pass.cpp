#include "bft/filter_pass.h"

#include "bft/filter_step.h"
#include "bft/observation_variance.h"
#include "core/check.h"
#include "kernels/gradient/trained_linear.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <tuple>

namespace gainlens::bft {

FilterState first_state(const Filter& filter, const PriorPrecision& prior, const at::Tensor& range, double strength,
                        std::int64_t width) {
  FilterState state{.strength = strength};
  const bool exists = prior.base.defined() || prior.rest.defined();
  if (!exists || strength == 0) return state;
  const at::Tensor initial = initial_precision(filter.options, prior, range);
  if (filter.begins_anew()) state.prior = prior;
  if (filter.has_gain()) {
    state.precision = initial.unsqueeze(1).expand({-1, width});
  } else {
    state.key_bias = strength * initial.log();
  }
  return state;
}

at::Tensor precision_in(const at::Tensor& precision, std::int64_t size) {
  return precision.size(1) == size ? precision : precision.mean(1, /*keepdim=*/true);
}

void refuse_idle_interventions(const Filter& filter, const hooks::Hooks& hooks, std::int64_t layers) {
  if (hooks.empty() || !filter.has_gain()) return;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    for (const std::string_view name : {precision_site, observation_site, gain_site, stretch_site}) {
      const hooks::Site site = hooks::block_site(layer, name);
      CHECK(!hooks.replaces(site),
            "hook {}: the filter is not in force (its strength is 0), so nothing can be replaced", site.name);
    }
  }
}

void FilterPass::begin() {
  state_.precision = sites_.at(precision_site, state_.precision);
}

ScoreBiases FilterPass::score_biases() const {
  if (state_.mode == FilterMode::follow) return {};
  const bool moves = state_.precision.defined();
  ScoreBiases biases{moves ? state_.precision.mean(1).log() : state_.key_bias, {}};
  // The plain layer has no decay while the filter warms up.
  if (weights_.recency.defined() && (moves || !filter_.has_gain()))
    biases.log_decay = at::log_sigmoid(in_filter_type(weights_.recency));
  if (moves && state_.strength < 1) {
    biases.key = biases.key * state_.strength;
    if (biases.log_decay.defined()) biases.log_decay = biases.log_decay * state_.strength;
  }
  return biases;
}

bool FilterPass::takes_fused_update(const ObservedMoments& observed) const {
  const at::Tensor& estimate = observed.estimate;
  const std::int64_t width = state_.precision.size(1);
  return filter_.parts().update == StreamUpdate::sum && state_.fused && state_.mode == FilterMode::act &&
         has_fused_update(filter_.options) && fits_fused_steps(state_.precision) && fits_fused_steps(estimate) &&
         estimate.size(1) == width && observed.residual.size(1) == width && !sites_.replaces(observation_site) &&
         !sites_.replaces(gain_site);
}

/// lambda_obs of what the heads found, [row, head, head_dim]. Source: eq. (6).
at::Tensor FilterPass::observation_precision_of(const ObservedMoments& observed) const {
  const EstimatorOptions options = filter_.options.estimator_options();
  const at::Tensor residual = by_heads(observed.residual);
  return observation_precision(
      variance_of_moments(filter_.options.estimator, observed.n_eff.unsqueeze(2), residual, options, residual.size(2)),
      options);
}

/// [row, head, head_dim] at the site, if it has that size; else as it is.
at::Tensor FilterPass::shown_gain(const at::Tensor& gain) const {
  if (gain.size(1) != heads_.count * heads_.head_dim) return sites_.at(gain_site, gain);
  return sites_.at(gain_site, by_heads(gain)).flatten(1);
}

at::Tensor FilterPass::update(const ObservedMoments& observed, const at::Tensor& hidden) {
  if (!takes_fused_update(observed)) return update(observed.estimate, observation_precision_of(observed), hidden);
  if (sites_.wants(observation_site) || sites_.wants(gain_site)) {  // seen to rounding; the fused step goes on
    const at::NoGradGuard no_gradients;
    const at::Tensor precision = observation_precision_of(observed);
    sites_.at(observation_site, precision);
    shown_gain(gain(state_.precision, precision.flatten(1)));
  }
  auto [scaled, posterior] = fused_update(observed, state_.precision, filter_.options, state_.strength);
  state_.precision = posterior;
  return scaled;
}

at::Tensor FilterPass::update(const at::Tensor& estimate, const at::Tensor& observation_precision,
                              const at::Tensor& hidden) {
  at::Tensor observed = sites_.at(observation_site, observation_precision);
  const StreamUpdate kind = filter_.parts().update;
  ASSERT(kind == StreamUpdate::sum || hidden.defined(), "filter: arm {} without the stream", filter_.parts().name);
  if (kind == StreamUpdate::least_error) observed = least_error_precision(observed, by_heads(in_filter_type(hidden)));
  observed = observed.flatten(1);
  const std::int64_t size = estimate.size(1), width = state_.precision.size(1);
  const at::Tensor own = bft::gain(precision_in(state_.precision, size), precision_in(observed, size));
  const at::Tensor gain = shown_gain(own.expand({-1, size}));
  state_.precision = posterior_precision(state_.precision, precision_in(observed, width), filter_.options);
  if (state_.mode == FilterMode::follow) return estimate;
  const at::Tensor factor = state_.strength < 1 ? 1 + state_.strength * (gain - 1) : gain;
  // With a share of the filter in force as much of the stream is taken away: nothing in the plain layer.
  if (kind == StreamUpdate::correction) state_.removed = (state_.strength * factor * hidden).to(hidden.scalar_type());
  return (estimate * factor).to(estimate.scalar_type());
}

at::Tensor FilterPass::scaled(const at::Tensor& estimate, const at::Tensor& input) const {
  at::Tensor factor;
  switch (filter_.parts().factor) {
    case AttentionFactor::one:
    case AttentionFactor::kalman_gain:  // 1 while the filter warms up
      return estimate;
    case AttentionFactor::gate:
      factor = at::sigmoid(fits_fused_steps(input) ? kernels::trained_linear(input, weights_.gate, weights_.gate_bias)
                                                   : at::linear(input, weights_.gate, weights_.gate_bias));
      break;
    case AttentionFactor::constant:
      factor = at::sigmoid(weights_.gain).expand_as(estimate);
      break;
  }
  ASSERT(factor.defined(), "filter: not a member of AttentionFactor");
  return estimate * shown_gain(factor);
}

void FilterPass::predict(const at::Tensor& jacobian) {
  if (filter_.begins_anew()) {
    const at::Tensor tau = initial_precision(filter_.options, state_.prior, weights_.range);
    state_.precision = tau.unsqueeze(1).expand_as(state_.precision);
    return;
  }
  const bool shown = sites_.wants(stretch_site);
  at::Tensor stretch, sum, predicted;
  if (jacobian.defined()) {
    if (state_.fused && fits_fused_steps(jacobian) && weights_.process_noise.defined() &&
        !sites_.replaces(stretch_site)) {
      if (shown) {
        const at::NoGradGuard no_gradients;
        sites_.at(stretch_site, bft::stretch(jacobian));
      }
      std::tie(predicted, sum) =
          fused_predict(state_.precision, jacobian,
                        process_noise(in_filter_type(weights_.process_noise), filter_.options), filter_.options);
    } else {
      stretch = sites_.at(stretch_site, bft::stretch(jacobian));
      if (state_.stretch_sums != nullptr) sum = stretch.detach().sum(0);
    }
    if (state_.stretch_sums != nullptr) state_.stretch_sums->push_back(sum);
  } else if (filter_.has_jacobian()) {
    stretch = in_filter_type(weights_.stretch);
    if (shown) stretch = sites_.at(stretch_site, stretch.expand_as(state_.precision));
  }
  if (!predicted.defined()) {
    const bool learns_decay = filter_.options.predict == Predict::decay;
    const at::Tensor parameter = in_filter_type(learns_decay ? weights_.decay : weights_.process_noise);
    predicted = predicted_precision(state_.precision, stretch, parameter, filter_.options);
  }
  state_.precision = predicted;
}

}  // namespace gainlens::bft
