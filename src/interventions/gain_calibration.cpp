#include "interventions/gain_calibration.h"

#include "core/check.h"
#include "interventions/gate_pass.h"
#include "interventions/log_histogram.h"

#include <ATen/ATen.h>

#include <cmath>
#include <utility>

namespace gainlens::interventions {
namespace {

/// Largest distance of a mean of K' from that of the gate. Passes of other lengths round differently.
constexpr double max_missed = 1e-4;

void add_to(at::Tensor& total, const at::Tensor& more) {
  total = total.defined() ? total + more : more.clone();
}

/// Sums of one layer over the documents.
struct Sums {
  at::Tensor gate, gain;                // [head, G]
  at::Tensor gate_energy, gain_energy;  // [head] of |g e|^2, |K e|^2
  std::vector<LogHistogram> precision;  // [head]
};

/// The first pass of one document.
void see(const GateSite& site, bool mean, Sums& sums) {
  const at::Tensor& precision = site.statistics.observation_precision_by_dimension;  // [head, query, dimension]
  const std::int64_t heads = precision.size(0);
  const at::Tensor gain = gain_of(precision, at::ones({heads}, at::kDouble), mean);
  add_to(sums.gain, gain.sum(1));
  if (!site.gate.defined()) return;
  add_to(sums.gate, site.gate.sum(1));
  const at::Tensor result = site.result.to(at::kDouble);
  add_to(sums.gate_energy, (site.gate * result).square().sum(at::IntArrayRef{1, 2}));
  add_to(sums.gain_energy, (gain * result).square().sum(at::IntArrayRef{1, 2}));
  const at::Tensor logarithms = precision.to(at::kDouble).log().contiguous();
  sums.precision.resize(static_cast<std::size_t>(heads));
  const auto numbers = static_cast<std::size_t>(logarithms.numel() / heads);
  for (std::size_t head = 0; head < sums.precision.size(); ++head)
    sums.precision[head].add({logarithms.const_data_ptr<double>() + head * numbers, numbers});
}

LayerCalibration solved(const Sums& sums, double queries) {
  LayerCalibration layer;
  layer.gain_mean = sums.gain / queries;
  if (!sums.gate.defined()) return layer;
  layer.gate_mean = sums.gate / queries;
  const at::Tensor scale = (sums.gate_energy / sums.gain_energy).sqrt(), gate = layer.gate_mean.mean(1);
  for (std::size_t head = 0; head < sums.precision.size(); ++head) {
    const auto place = static_cast<std::int64_t>(head);
    layer.scale.push_back(scale[place].item<double>());
    const auto log_lambda = sums.precision[head].solve(gate[place].item<double>());
    layer.lambda.push_back(log_lambda ? std::optional(std::exp(*log_lambda)) : std::nullopt);
  }
  return layer;
}

/// K', or K / K_cal without gates, whatever the gate is.
at::Tensor followed_gain(const GateSite& site, const LayerCalibration& layer) {
  return gate_of_arm(site.gate.defined() ? GateArm::gain : GateArm::modulated,
                     site.statistics.observation_precision_by_dimension, site.gate, layer, 0, 0);
}

void add_heads(std::int64_t number, const LayerCalibration& layer, const at::Tensor& gain, GainCalibration& found) {
  for (std::int64_t head = 0; head < layer.gain_mean.size(0); ++head) {
    runfile::CalibratedHead& made = found.heads.emplace_back();
    made.layer = number;
    made.head = head;
    made.raw_mean = layer.gain_mean[head].mean().item<double>();
    if (!layer.gate_mean.defined()) continue;
    const auto place = static_cast<std::size_t>(head);
    made.gate = layer.gate_mean[head].mean().item<double>();
    made.lambda = layer.lambda[place];
    made.scale = layer.scale[place];
    if (!std::isfinite(*made.scale))
      throw_run_failed("layer {}, head {}: attention's result is 0 over the calibration text", number, head);
    if (!made.lambda) continue;
    made.gain = gain[head].item<double>();
    if (!(std::abs(*made.gain - *made.gate) <= max_missed)) {
      throw_run_failed("layer {}, head {}: the mean of K' is {:.8g} and that of the gate {:.8g}", number, head,
                       *made.gain, *made.gate);
    }
  }
}

}  // namespace

GainCalibration calibrate_gates(models::Decoder& model, const std::vector<std::vector<std::int32_t>>& documents,
                                std::int64_t trained_length, bool positions) {
  const bool mean = !by_dimension(model.config().gate);
  const double queries = static_cast<double>(documents.size()) * static_cast<double>(trained_length);
  const auto start_of = [&](const std::vector<std::int32_t>& document) {
    ASSERT(std::ssize(document) >= trained_length, "a calibration document of {} tokens", document.size());
    return std::vector<std::int32_t>(document.begin(), document.begin() + trained_length);
  };
  std::map<std::int64_t, Sums> sums;
  for (const std::vector<std::int32_t>& document : documents) {
    run_gate_pass(model, start_of(document), false, [&](const GateSite& site) {
      see(site, mean, sums[site.layer]);
      return at::Tensor();
    });
  }
  GainCalibration found;
  for (const auto& [number, layer_sums] : sums) found.layers[number] = solved(layer_sums, queries);
  sums.clear();

  std::map<std::int64_t, at::Tensor> trained;  // [head]
  const bool again = positions || model.config().gate != models::Gate::none;
  for (const std::vector<std::int32_t>& document : documents) {
    if (!again) break;
    run_gate_pass(model, positions ? document : start_of(document), false, [&](const GateSite& site) {
      LayerCalibration& layer = found.layers.at(site.layer);
      const at::Tensor gain = followed_gain(site, layer);  // [head, query, G]
      add_to(trained[site.layer], gain.slice(1, 0, trained_length).mean(2).sum(1));
      if (positions) add_to(layer.by_position, gain);
      return at::Tensor();
    });
  }
  for (auto& [number, layer] : found.layers) {
    if (positions) layer.by_position = layer.by_position / static_cast<double>(documents.size());
    add_heads(number, layer, again ? trained.at(number) / queries : at::Tensor(), found);
  }
  return found;
}

}  // namespace gainlens::interventions
