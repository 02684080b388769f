#include "depth/carried_variance.h"

#include "bft/filter_step.h"
#include "core/check.h"
#include "models/decoder/norm.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <vector>

namespace gainlens::depth {
namespace {

/// The gate as a factor on [query, head, value_dim].
at::Tensor gated(const at::Tensor& values, const at::Tensor& gate, int power) {
  if (!gate.defined()) return values;
  const at::Tensor by_dimension = gate.dim() == values.dim() ? gate : gate.unsqueeze(-1);
  return values * (power == 2 ? by_dimension.square() : by_dimension);
}

/// (w / r)^2 of the norm after attention, r being what it divides by: its Jacobian without the part that moves r.
at::Tensor post_norm_factor(const models::DecoderConfig& config, const models::LayerWeights& weights,
                            const LayerReading& reading) {
  const at::Tensor result =
      at::linear(gated(reading.estimate, reading.gate, 1).flatten(1), weights.output, weights.output_bias);
  const at::Tensor square = config.norm == models::Norm::layer
                                ? result.var(/*dim=*/1, /*unbiased=*/false, /*keepdim=*/true)
                                : result.square().mean(1, /*keepdim=*/true);
  return (weights.attention_post_norm + config.norm_offset).square() / (square + config.norm_epsilon);
}

}  // namespace

void check_carries(const models::DecoderConfig& config, std::int64_t layers, const std::string& where) {
  std::vector<std::int64_t> without;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    if (!config.attends(layer)) without.push_back(layer);
  }
  CHECK(without.empty(),
        "{}: layers {} have {} and no attention weights, so no variance of an "
        "estimate is known there",
        where, fmt::join(without, ", "), config.without_attention());
  CHECK(!config.parallel_residual,
        "{}: attention and MLP read the same stream; the rules need the MLP to read the result of attention", where);
  CHECK(!config.sink_logits, "{}: attention has sink logits; the rules need weights that sum to 1", where);
  CHECK(!config.clipped_gate, "{}: the MLP clips its gate; its Jacobian is not known", where);
  CHECK(!config.filter, "{}: the model has a filter, which carries its own precision; look at it with gainlens capture",
        where);
}

at::Tensor estimate_variance(const LayerReading& reading) {
  const std::int64_t group = reading.n_eff.size(1) / reading.value_variance.size(0);
  const at::Tensor prior = reading.value_variance.repeat_interleave(group, 0);  // [head, value_dim]
  const at::Tensor n = reading.n_eff.unsqueeze(-1);
  return (n * reading.residual + prior) / n.square();
}

ObservedVariance observed_variance(const models::DecoderConfig& config, const models::LayerWeights& weights,
                                   const LayerReading& reading) {
  const at::Tensor variance = estimate_variance(reading);
  ObservedVariance observed{
      at::matmul(gated(variance, reading.gate, 2).flatten(1), weights.output.square().t()),
      at::matmul(gated(variance.sqrt(), reading.gate, 1).flatten(1), weights.output.abs().t()).square()};
  at::Tensor factor = at::scalar_tensor(config.residual_scale * config.residual_scale, at::kDouble);
  if (config.post_norm) factor = factor * post_norm_factor(config, weights, reading);
  return {observed.independent * factor, observed.bound * factor};
}

at::Tensor gain(const at::Tensor& variance, const at::Tensor& observed, std::int64_t layer) {
  const at::Tensor sum = variance + observed;
  if (!(sum > 0).all().item<bool>()) {
    throw_run_failed(
        "depth: in layer {} neither the stream nor attention has a variance in some coordinate; K is not defined there",
        layer);
  }
  return variance / sum;
}

at::Tensor updated(const at::Tensor& variance, const at::Tensor& observed, runfile::DepthReading reading) {
  const at::Tensor sum = variance + observed;
  return reading == runfile::DepthReading::filter ? variance * observed / sum : sum;
}

at::Tensor stretch(const at::Tensor& jacobian) {
  return bft::stretch(jacobian);
}

runfile::DepthQuantiles quantiles_of(const at::Tensor& values) {
  const auto& shares = runfile::depth_shares;
  const at::Tensor at_shares = at::tensor(std::vector<double>(shares.begin(), shares.end()), at::kDouble);
  const at::Tensor found = at::quantile(values.flatten(), at_shares);
  runfile::DepthQuantiles quantiles{};
  for (std::size_t i = 0; i < quantiles.size(); ++i) quantiles[i] = found[static_cast<std::int64_t>(i)].item<double>();
  return quantiles;
}

}  // namespace gainlens::depth
