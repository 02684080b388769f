#include "bft/filter_pass.h"
#include "core/check.h"
#include "kernels/gradient/packed_attention.h"
#include "kernels/gradient/selected_rows.h"
#include "models/decoder/attention_ops.h"
#include "recommend/sasrec_pass.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <vector>

// What SASRec gives its filter: attention with moments, and the diagonal of the Jacobian.

namespace gainlens::recommend {

at::Tensor SasRec::initial_precision(const at::Tensor& items) const {
  const bool content = filter_.options.initial_precision == bft::InitialPrecision::content;
  return bft::initial_precision(filter_.options, weights_.precision, items,
                                content ? kernels::selected_rows(weights_.item_embedding, items) : at::Tensor());
}

void SasRec::refresh_jacobian() {
  if (!filter_.has_jacobian() || filter_.options.jacobian != bft::JacobianForm::low_rank) return;
  const at::NoGradGuard no_gradients;
  factors_.clear();
  for (const SasRecLayerWeights& layer : weights_.layers)
    factors_.push_back(bft::jacobian_factors(layer.up.weight, layer.down.weight, filter_.options.jacobian_rank));
}

std::vector<double> SasRec::jacobian_energy() const {
  std::vector<double> kept;
  for (const bft::JacobianFactors& factors : factors_) kept.push_back(factors.kept);
  return kept;
}

std::vector<bft::FilterWeights*> SasRec::layer_filter_weights() {
  std::vector<bft::FilterWeights*> layers;
  for (SasRecLayerWeights& layer : weights_.layers) layers.push_back(&layer.filter);
  return layers;
}

std::vector<models::NamedTensor> SasRec::filter_constants() {
  return parameters_of(sasrec_slots(config_, weights_), WeightRole::constant);
}

hooks::Qkv SasRec::batched(const hooks::Qkv& heads, const Pass& pass) const {
  const auto of_batch = [&](const at::Tensor& x) {
    return x.view({pass.batch, pass.positions, config_.heads, config_.head_dim()}).transpose(1, 2);
  };
  return {of_batch(heads.query), of_batch(heads.key), of_batch(heads.value)};
}

at::Tensor SasRec::filtered_attention(std::int64_t layer, const at::Tensor& input, const hooks::Qkv& heads,
                                      Stream& stream, const Pass& pass) const {
  const SasRecLayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  const LayerSites sites(pass, layer);
  bft::FilterPass filter(filter_, weights.filter, sites, stream.filter, config_.heads);
  const bool moves = stream.filter.precision.defined();
  if (moves) filter.begin();
  const bool projects_first = projects_before_gain();
  const auto shown = [&](const at::Tensor& estimate) {
    const at::Tensor seen = pass.at(layer, "attn.hook_z", estimate).flatten(1);
    return projects_first ? linear(seen, weights.output) : seen;
  };
  kernels::PackedAttentionOptions options{.causal = !config_.bidirectional,
                                          .dropout = pass.dropout(pass.noise.attention_rate, layer, attention_place)};
  if (moves && !filter_.gains_from_moments()) {
    const bft::HeadObservation found = observed_by_weights(layer, heads, stream, options, pass);
    return filter.update(shown(found.estimate), found.precision, stream.hidden);
  }
  const bft::ScoreBiases biases = filter.score_biases();
  options.key_bias = biases.key;
  options.distance_slope = biases.log_decay;
  options.last_queries = pass.last_rows.defined();
  if (pass.watch != nullptr) (*pass.watch)({layer, heads.query, heads.key, heads.value, options});
  if (moves) stream.filter.precision = query_rows(stream.filter.precision, pass.last_rows);  // keys have read theirs
  const hooks::Site pattern_site = hooks::block_site(layer, "attn.hook_pattern");
  const bool replaced = pass.equal_lengths && pass.hooks.replaces(pattern_site);
  at::Tensor pattern;
  if (pass.equal_lengths && pass.shows(pattern_site)) pattern = shown_pattern(pattern_site, heads, biases, pass);
  const auto by_row = [](const at::Tensor& x) { return x.transpose(1, 2).flatten(0, 1); };
  if (moves) {
    kernels::PackedMoments found;
    if (replaced) {
      const hooks::ObservedAttention observed = models::observed_by_pattern(pattern, batched(heads, pass).value);
      found = {by_row(observed.output), by_row(observed.n_eff), by_row(observed.residual)};
    } else {
      found = kernels::packed_attention_moments(heads.query, heads.key, heads.value, pass.bounds, options);
    }
    return filter.update({shown(found.output), found.n_eff, found.residual.flatten(1)},
                         query_rows(stream.hidden, pass.last_rows));
  }
  at::Tensor estimate;
  if (replaced) {
    estimate = by_row(models::apply_pattern(pattern, batched(heads, pass).value));
  } else if (pass.operation != nullptr) {
    estimate = by_row(pass.operation->run(layer, batched(heads, pass), {.causal = !config_.bidirectional}));
  } else {
    estimate = kernels::packed_attention(heads.query, heads.key, heads.value, pass.bounds, options);
  }
  return filter.scaled(shown(estimate), input);
}

bft::HeadObservation SasRec::observed_by_weights(std::int64_t layer, const hooks::Qkv& heads, const Stream& stream,
                                                 kernels::PackedAttentionOptions options, const Pass& pass) const {
  const SasRecLayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  if (weights.filter.recency.defined()) options.distance_slope = at::log_sigmoid(weights.filter.recency);
  bft::HeadProjections projections;
  const bool projected = filter_.options.estimator == bft::Estimator::delta;
  if (projected) {
    const std::vector<std::int64_t> shape{config_.heads, config_.head_dim(), config_.width};
    projections = {weights.key.weight.view(shape), weights.value.weight.view(shape)};
  }
  return bft::observe_packed(heads.query, heads.key, heads.value, stream.filter.precision, pass.bounds, options,
                             filter_.options, stream.filter.strength, projected ? &projections : nullptr);
}

at::Tensor SasRec::shown_pattern(const hooks::Site& site, const hooks::Qkv& heads, const bft::ScoreBiases& biases,
                                 const Pass& pass) const {
  hooks::PrecisionBias bias{.log_decay = biases.log_decay};
  if (biases.key.defined()) bias.key = biases.key.view({pass.batch, pass.positions});
  return pass.hooks.at(site, models::attention_pattern(batched(heads, pass), {.causal = !config_.bidirectional}, bias));
}

bool SasRec::needs_slopes(std::int64_t layer, const Stream& stream, const Pass& pass) const {
  const bool takes_mean = filter_.has_running_jacobian() && !pass.training;
  return stream.filter.precision.defined() && filter_.has_jacobian() && !takes_mean && layer + 1 < config_.layers;
}

at::Tensor SasRec::jacobian(std::int64_t layer, const at::Tensor& hidden, const at::Tensor& slopes) const {
  const SasRecLayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  if (filter_.options.jacobian == bft::JacobianForm::low_rank)
    return bft::jacobian(factors_.at(static_cast<std::size_t>(layer)), slopes);
  if (!filter_.options.norm_jacobian) return bft::jacobian(weights.up.weight, weights.down.weight, slopes);
  const at::Tensor deviation = (hidden.var(-1, /*unbiased=*/false, /*keepdim=*/true) + config_.norm_epsilon).sqrt();
  const at::Tensor normalised = (hidden - hidden.mean(-1, /*keepdim=*/true)) / deviation;
  return bft::jacobian_with_norm(weights.up.weight, weights.down.weight, slopes, normalised, deviation,
                                 weights.mlp_norm.weight);
}

void SasRec::predict(std::int64_t layer, Stream& stream, const at::Tensor& slopes, const Pass& pass) const {
  const LayerSites sites(pass, layer);
  const SasRecLayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  bft::FilterPass filter(filter_, weights.filter, sites, stream.filter, config_.heads);
  filter.predict(slopes.defined() ? jacobian(layer, stream.hidden, slopes) : at::Tensor());
}

}  // namespace gainlens::recommend
