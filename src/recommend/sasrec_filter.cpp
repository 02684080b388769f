#include "bft/filter_step.h"
#include "bft/fused_step.h"
#include "bft/initial_precision.h"
#include "bft/packed_observation.h"
#include "core/check.h"
#include "kernels/gradient/selected_rows.h"
#include "models/decoder/norm.h"
#include "recommend/sasrec_pass.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <tuple>
#include <vector>

// The Bayesian filter of SASRec, and the arms that have a part of it.

namespace gainlens::recommend {

double SasRec::strength() const {
  const at::Tensor& strength = weights_.precision.strength;
  return strength.defined() ? strength.item<double>() : 1;
}

at::Tensor SasRec::initial_precision(const at::Tensor& items) const {
  const ItemPrecisionWeights& weights = weights_.precision;
  at::Tensor found;
  switch (config_.filter.initial_precision) {
    case bft::InitialPrecision::content:
      found = bft::content_precision(weights.network, kernels::selected_rows(weights_.item_embedding, items),
                                     weights.base.index_select(0, items), weights.range);
      break;
    case bft::InitialPrecision::table:
      found = bft::table_precision(weights.table.index_select(0, items));
      break;
    case bft::InitialPrecision::count:
      found = weights.range * weights.base.index_select(0, items);
      break;
    case bft::InitialPrecision::em:
      found = weights.items.index_select(0, items);
      break;
  }
  return found.clamp(config_.filter.least_precision, config_.filter.most_precision);
}

void SasRec::refresh_jacobian() {
  if (!config_.has_jacobian() || config_.filter.jacobian != bft::JacobianForm::low_rank) return;
  const at::NoGradGuard no_gradients;
  factors_.clear();
  for (const SasRecLayerWeights& layer : weights_.layers)
    factors_.push_back(bft::jacobian_factors(layer.up.weight, layer.down.weight, config_.filter.jacobian_rank));
}

kernels::PackedAttentionOptions SasRec::packed_options(std::int64_t layer, const Pass& pass) const {
  const FilterWeights& weights = weights_.layers[static_cast<std::size_t>(layer)].filter;
  kernels::PackedAttentionOptions options{.dropout = pass.dropout(pass.noise.attention_rate, layer, attention_place)};
  if (weights.recency.defined()) options.distance_slope = at::log_sigmoid(weights.recency);
  return options;
}

at::Tensor SasRec::filtered_attention(std::int64_t layer, const hooks::Qkv& heads, Stream& stream,
                                      const Pass& pass) const {
  const SasRecLayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  const at::Tensor precision = stream.precision = pass.at(layer, "hook_precision", stream.precision);
  const bool traced = pass.trace != nullptr && pass.trace->whole;
  const double share = strength();
  if (bft::fits_fused_steps(precision) && bft::has_fused_update(config_.filter) && !traced && !pass.is_batch()) {
    const kernels::PackedMoments found = bft::packed_moments(heads.query, heads.key, heads.value, precision,
                                                             pass.bounds, packed_options(layer, pass), share);
    auto [scaled, posterior] = bft::fused_update({found.output.flatten(1), found.n_eff, found.residual.flatten(1)},
                                                 precision, config_.filter, share);
    stream.precision = posterior;
    return scaled;
  }
  bft::HeadProjections projections;
  const bool projected = config_.filter.estimator == bft::Estimator::delta;
  if (projected) {
    const std::vector<std::int64_t> shape{config_.heads, config_.head_dim(), config_.width};
    projections = {weights.key.weight.view(shape), weights.value.weight.view(shape)};
  }
  const bft::HeadObservation found =
      bft::observe_packed(heads.query, heads.key, heads.value, precision, pass.bounds, packed_options(layer, pass),
                          config_.filter, share, projected ? &projections : nullptr);
  const at::Tensor observed = pass.at(layer, "attn.hook_observation_precision", found.precision).flatten(1);
  const at::Tensor gain = pass.at(layer, "attn.hook_gain", bft::gain(precision, observed));
  if (traced) {
    pass.trace->precision.push_back(precision.detach());
    pass.trace->observation_precision.push_back(observed.detach());
    pass.trace->gain.push_back(gain.detach());
    pass.trace->estimate.push_back(found.estimate.detach().flatten(1));
  }
  stream.precision = bft::posterior_precision(precision, observed, config_.filter);
  const at::Tensor estimate = pass.at(layer, "attn.hook_z", found.estimate).flatten(1);
  return estimate * (share < 1 ? 1 + share * (gain - 1) : gain);
}

bool SasRec::needs_slopes(std::int64_t layer, const Stream& stream, const Pass& pass) const {
  const bool takes_mean = config_.filter.running_jacobian && pass.trace == nullptr;
  return stream.precision.defined() && config_.has_jacobian() && !takes_mean && layer + 1 < config_.layers;
}

at::Tensor SasRec::jacobian(std::int64_t layer, const Stream& stream, const at::Tensor& slopes) const {
  const SasRecLayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  if (config_.filter.jacobian == bft::JacobianForm::low_rank)
    return bft::jacobian(factors_.at(static_cast<std::size_t>(layer)), slopes);
  if (!config_.filter.norm_jacobian) return bft::jacobian(weights.up.weight, weights.down.weight, slopes);
  const at::Tensor& hidden = stream.hidden;
  const at::Tensor deviation = (hidden.var(-1, /*unbiased=*/false, /*keepdim=*/true) + config_.norm_epsilon).sqrt();
  const at::Tensor normalised = (hidden - hidden.mean(-1, /*keepdim=*/true)) / deviation;
  return bft::jacobian_with_norm(weights.up.weight, weights.down.weight, slopes, normalised, deviation,
                                 weights.mlp_norm.weight);
}

at::Tensor SasRec::predicted_precision(std::int64_t layer, const Stream& stream, const at::Tensor& slopes,
                                       const Pass& pass) const {
  const FilterWeights& weights = weights_.layers[static_cast<std::size_t>(layer)].filter;
  at::Tensor stretch, sum, predicted;
  if (slopes.defined()) {
    const at::Tensor diagonal = jacobian(layer, stream, slopes);
    if (bft::fits_fused_steps(diagonal) && weights.process_noise.defined()) {
      std::tie(predicted, sum) = bft::fused_predict(
          stream.precision, diagonal, bft::process_noise(weights.process_noise, config_.filter), config_.filter);
    } else {
      stretch = bft::stretch(diagonal);
      sum = stretch.detach().sum(0);
    }
    if (pass.trace != nullptr) pass.trace->stretch_sum.push_back(sum);
  } else {
    stretch = weights.stretch;  // undefined without a Jacobian
  }
  if (predicted.defined()) return predicted;
  const at::Tensor& parameter = config_.filter.predict == bft::Predict::decay ? weights.decay : weights.process_noise;
  return bft::predicted_precision(stream.precision, stretch, parameter, config_.filter);
}

}  // namespace gainlens::recommend
