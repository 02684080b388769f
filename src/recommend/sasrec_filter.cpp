#include "bft/filter_pass.h"
#include "core/check.h"
#include "kernels/gradient/packed_attention.h"
#include "models/decoder/attention_ops.h"
#include "recommend/sasrec.h"

#include <ATen/ATen.h>

#include <vector>

// What SASRec gives its filter: attention with moments.

namespace gainlens::recommend {

hooks::Qkv SasRec::batched(const hooks::Qkv& heads, const Pass& pass) const {
  const auto in_batch = [&](const at::Tensor& x) {
    return x.view({pass.batch, pass.positions, config_.heads, config_.head_dim()}).transpose(1, 2);
  };
  return {in_batch(heads.query), in_batch(heads.key), in_batch(heads.value)};
}

at::Tensor SasRec::filtered_attention(std::int64_t layer, const at::Tensor& input, const hooks::Qkv& heads,
                                      Stream& stream, const Pass& pass) const {
  const SasRecLayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  const LayerSites sites(pass, layer);
  bft::FilterPass filter(filter_, weights.filter, sites, stream.filter, {config_.heads, config_.head_dim()});
  const bool moves = stream.filter.precision.defined();
  if (moves) filter.begin();
  const bool projects_first = filter_.gains_in_stream();
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

}  // namespace gainlens::recommend
