#include "bft/packed_observation.h"

#include "bft/observation_variance.h"
#include "core/check.h"
#include "kernels/gradient/padded_sequences.h"

#include <ATen/ATen.h>

#include <cmath>

namespace gainlens::bft {
namespace {

using kernels::PackedAttentionOptions;
using kernels::PaddedSequences;

double scale_of(const at::Tensor& query, const PackedAttentionOptions& options) {
  return options.scale != 0 ? options.scale : 1 / std::sqrt(static_cast<double>(query.size(2)));
}

/// The options with the biases of precision and distance, as far as they act.
PackedAttentionOptions biased(const PackedAttentionOptions& given, const at::Tensor& precision, double strength) {
  ASSERT(!given.key_bias.defined(), "observation: the bias of the keys is that of their precision");
  PackedAttentionOptions options = given;
  options.key_bias = precision.mean(1).log();
  if (strength < 1) {
    options.key_bias = options.key_bias * strength;
    if (options.distance_slope.defined()) options.distance_slope = options.distance_slope * strength;
  }
  return options;
}

/// Every estimator, over padded sequences with explicit weights.
HeadObservation materialised(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                             const at::Tensor& precision, const PaddedSequences& sequences,
                             const PackedAttentionOptions& options, const FilterOptions& filter,
                             const HeadProjections* projections) {
  const at::Tensor scores = kernels::padded_scores(sequences, query, key, scale_of(query, options), options);
  const at::Tensor weights = scores.softmax(-1), values = sequences.padded(value);
  at::Tensor dropped = weights;
  if (options.dropout.rate != 0) dropped = weights * kernels::padded_dropout(sequences, options.dropout, weights);
  NoisyTokens noise;
  if (filter.estimator == Estimator::delta) {
    ASSERT(projections != nullptr, "observation: delta without projections");
    const at::Tensor means = sequences.padded(precision.mean(1).view({-1, 1, 1}));
    noise = {sequences.padded(query), projections->key, projections->value, means.select(1, 0).squeeze(-1)};
  }
  const EstimatorOptions estimator = filter.estimator_options();
  const at::Tensor visible = sequences.hidden_keys(options.causal, scores.options()) == 0;
  const at::Tensor variance = observation_variance(filter.estimator, {weights, values, visible}, estimator,
                                                   filter.estimator == Estimator::delta ? &noise : nullptr);
  return {sequences.packed(at::matmul(dropped, values)),
          sequences.packed(weights.square().sum(-1, /*keepdim=*/true).reciprocal()).squeeze(2),
          sequences.packed(observation_precision(variance, estimator))};
}

/// Weights p_j lambda_ji / sum of each dimension i. They factorise: with P the plain weights and L the precisions, sums
/// over keys are products of P with L times what is summed.
HeadObservation per_dimension(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                              const at::Tensor& precision, const PaddedSequences& sequences,
                              const PackedAttentionOptions& options, const FilterOptions& filter) {
  const at::Tensor weights =
      kernels::padded_scores(sequences, query, key, scale_of(query, options), options).softmax(-1);
  at::Tensor dropped = weights;
  if (options.dropout.rate != 0) dropped = weights * kernels::padded_dropout(sequences, options.dropout, weights);
  const at::Tensor values = sequences.padded(value), reliability = sequences.padded(precision.view(value.sizes()));
  const at::Tensor total = at::matmul(weights, reliability);
  const at::Tensor offsets = values - values.mean(2, /*keepdim=*/true).detach();
  const at::Tensor mean = at::matmul(weights, reliability * offsets) / total;
  const at::Tensor residual =
      (at::matmul(weights, reliability * offsets.square()) / total - mean.square()).clamp_min(0);
  const at::Tensor n_eff = total.square() / at::matmul(weights.square(), reliability.square());
  const EstimatorOptions estimator = filter.estimator_options();
  const at::Tensor variance = variance_of_moments(filter.estimator, n_eff, residual, estimator, value.size(2));
  return {sequences.packed(at::matmul(dropped, reliability * values) / total), sequences.packed(n_eff),
          sequences.packed(observation_precision(variance, estimator))};
}

}  // namespace

HeadObservation observe_packed(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                               const at::Tensor& precision, const kernels::PackedBounds& begin,
                               const PackedAttentionOptions& given, const FilterOptions& filter, double strength,
                               const HeadProjections* projections) {
  const PackedAttentionOptions options = biased(given, precision, strength);
  if (filter.kriging == Kriging::per_dimension) {
    PackedAttentionOptions own = options;
    own.key_bias = at::Tensor();  // each dimension has its own
    const at::Tensor blended = strength < 1 ? precision.pow(strength) : precision;
    return per_dimension(query, key, value, blended, PaddedSequences(begin, query.device()), own, filter);
  }
  if (!needs_moments_alone(filter.estimator)) {
    return materialised(query, key, value, precision, PaddedSequences(begin, query.device()), options, filter,
                        projections);
  }
  const kernels::PackedMoments found = kernels::packed_attention_moments(query, key, value, begin, options);
  const EstimatorOptions estimator = filter.estimator_options();
  const at::Tensor variance =
      variance_of_moments(filter.estimator, found.n_eff.unsqueeze(2), found.residual, estimator, value.size(2));
  return {found.output, found.n_eff, observation_precision(variance, estimator)};
}

}  // namespace gainlens::bft
