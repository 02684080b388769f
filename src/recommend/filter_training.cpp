#include "recommend/filter_training.h"

#include "bft/filter_step.h"
#include "bft/warm_up.h"
#include "core/check.h"
#include "runfile/recommend_run.h"
#include "training/tensor_notes.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <span>
#include <tuple>

namespace gainlens::recommend {
namespace {

/// Users whose sequences an epoch's record is made of, the first ones.
constexpr std::int64_t recorded_users = 256;
constexpr std::int64_t users_at_once = 256;
/// Of a bound that was taken as a variance, in float32.
constexpr double rounding = 1e-6;
/// A share of capped precisions that is worth a warning.
constexpr double almost_all = 0.99;

std::vector<float> item_bases(const data::LeaveOneOut& split) {
  const auto& counts = split.training_counts();
  std::vector<float> bases = bft::popularity_ranks(std::span(counts).subspan(1));
  bases.insert(bases.begin(), 0);  // id 0 is no item
  return bases;
}

/// The mean of the two middle ones of an even number.
double median_of(const at::Tensor& values) {
  const at::Tensor flat = values.flatten();
  const auto place = [&](std::int64_t k) { return std::get<0>(flat.kthvalue(k)).item<double>(); };
  return (place((flat.numel() + 1) / 2) + place(flat.numel() / 2 + 1)) / 2;
}

}  // namespace

FilterTraining::FilterTraining(SasRec& model, const data::LeaveOneOut& split, const std::vector<std::int64_t>& users,
                               std::int64_t steps_per_epoch)
    : model_(model), weights_(model.weights()), split_(split), users_(users), steps_per_epoch_(steps_per_epoch) {
  const at::NoGradGuard no_gradients;
  if (weights_.precision.base.defined()) weights_.precision.base.copy_(at::tensor(item_bases(split), at::kFloat));
}

double FilterTraining::share() const {
  return weights_.precision.strength.item<double>();
}

PackedSequences FilterTraining::sequences_of(std::int64_t first, std::int64_t last) const {
  const auto users = std::span(users_).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first));
  return pack_training(split_, users, model_.view(), model_.device());
}

FilterTrace FilterTraining::trace_of(const PackedSequences& sequences) const {
  const at::NoGradGuard no_gradients;
  FilterTrace trace;
  model_.hidden(sequences, {}, &trace);
  return trace;
}

void FilterTraining::refuse_nan(const FilterTrace& trace) {
  for (std::size_t layer = 0; layer < trace.precision.size(); ++layer) {
    for (const at::Tensor& precision : {trace.precision[layer], trace.observation_precision[layer]}) {
      if (at::isnan(precision).any().item<bool>())
        throw_run_failed("training: a precision is NaN, first in layer {}", layer);
    }
  }
}

void FilterTraining::prepare(std::int64_t step, const PackedSequences& batch) {
  if (!has_precision()) return;
  const at::NoGradGuard no_gradients;
  if (step % steps_per_epoch_ == 0) model_.refresh_jacobian();
  weights_.precision.strength.fill_(bft::share_at(model_.config().filter, step));
  if (share() == 0) return;
  const bool first = started_from_ == 0;
  if (first) start_initial_precision(batch);
  if (step % steps_per_epoch_ == 0 && !first && weights_.precision.items.defined()) estimate_items();
}

void FilterTraining::start_initial_precision(const PackedSequences& batch) {
  const bft::FilterOptions& filter = model_.config().filter;
  const ItemPrecisionWeights& weights = weights_.precision;
  started_from_ = 2.0 * static_cast<double>(model_.config().head_dim());
  if (filter.initial_gain_of_data && model_.config().has_gain()) {
    // All items alike, so that precisions do not move the weights.
    if (weights.range.defined()) weights.range.zero_();
    const double share = this->share();
    weights.strength.fill_(1);
    const FilterTrace trace = trace_of(batch);
    weights.strength.fill_(share);
    refuse_nan(trace);
    started_from_ = median_of(trace.observation_precision.front());
  }
  const std::vector<float> bases = item_bases(split_);
  const at::Tensor base = at::tensor(bases, at::kFloat);
  const double rest = filter.initial_precision == bft::InitialPrecision::count ? 0 : std::numbers::ln2;
  const double range =
      bft::initial_range(started_from_, filter.initial_gain, median_of(base.slice(0, 1)), rest, filter.least_precision);
  if (weights.range.defined()) weights.range.fill_(range);
  if (weights.items.defined())
    weights.items.copy_((range * base + rest).clamp(filter.least_precision, filter.most_precision));
}

void FilterTraining::estimate_items() {
  const bft::FilterOptions& filter = model_.config().filter;
  std::vector<at::Tensor> items, innovations, observed;
  for (std::int64_t first = 0; first < std::ssize(users_); first += users_at_once) {
    const PackedSequences sequences = sequences_of(first, std::min(first + users_at_once, std::ssize(users_)));
    const FilterTrace trace = trace_of(sequences);
    refuse_nan(trace);
    items.push_back(sequences.items);
    innovations.push_back(trace.estimate.front());
    observed.push_back(trace.observation_precision.front());
  }
  at::Tensor innovation = at::cat(innovations);
  innovation = innovation - innovation.mean(0);
  bft::EmOptions options;
  options.prior_precision = started_from_ * (1 - filter.initial_gain) / filter.initial_gain;
  options.least = filter.least_precision;
  options.most = filter.most_precision;
  const at::Tensor found =
      bft::em_step(weights_.precision.items.to(at::kDouble), at::cat(items), innovation, at::cat(observed), options)
          .precision;
  weights_.precision.items.copy_(found);
}

at::Tensor FilterTraining::hidden_of_step(const PackedSequences& inputs, const TrainingNoise& noise) {
  of_step_ = {.whole = false};
  return model_.hidden(inputs, noise, &of_step_);
}

void FilterTraining::refuse_nan(const PackedSequences& inputs, const TrainingNoise& noise) const {
  const at::NoGradGuard no_gradients;
  FilterTrace whole;
  model_.hidden(inputs, noise, &whole);
  refuse_nan(whole);
}

void FilterTraining::learn_from(std::int64_t positions, training::Replicas& replicas) {
  const SasRecConfig& config = model_.config();
  if (!config.has_jacobian() || !config.filter.running_jacobian || share() == 0) return;
  const at::NoGradGuard no_gradients;
  std::vector<at::Tensor> sums;
  for (std::int64_t layer = 0; layer + 1 < config.layers; ++layer) {
    sums.push_back(positions > 0 ? of_step_.stretch_sum.at(static_cast<std::size_t>(layer)).clone()
                                 : at::zeros({config.width}, weights_.item_embedding.options().requires_grad(false)));
  }
  const at::Tensor count = at::scalar_tensor(static_cast<double>(positions), at::kDouble);
  if (replicas.size() > 1) {
    std::vector<at::Tensor> shared = sums;
    shared.push_back(count);
    replicas.sum(shared);
  }
  const double memory = bft::running_memory(batches_seen_++);
  for (std::size_t layer = 0; layer < sums.size(); ++layer)
    weights_.layers[layer].filter.stretch.mul_(memory).add_(sums[layer] / count.item<double>(), 1 - memory);
}

void FilterTraining::record_epoch() {
  if (!model_.config().has_gain()) return;
  const at::NoGradGuard no_gradients;
  const SasRecConfig& config = model_.config();
  model_.refresh_jacobian();
  FilterTrace trace;
  if (share() > 0) trace = trace_of(sequences_of(0, std::min(recorded_users, std::ssize(users_))));
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  const auto mean_of = [](const at::Tensor& values) { return values.to(at::kDouble).mean().item<double>(); };
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const auto layer = static_cast<std::size_t>(i);
    const FilterWeights& weights = weights_.layers[layer].filter;
    std::map<std::string_view, double> found;
    if (layer < trace.gain.size()) {
      found["precision"] = mean_of(trace.precision[layer]);
      found["observation_precision"] = mean_of(trace.observation_precision[layer]);
      found["gain"] = mean_of(trace.gain[layer]);
      found["share_of_precision_at_most"] =
          mean_of(trace.precision[layer] >= config.filter.most_precision * (1 - rounding));
      found["share_at_most"] =
          mean_of(trace.observation_precision[layer] >= config.filter.most_precision * (1 - rounding));
    }
    if (layer < trace.stretch_sum.size())
      found["stretch"] = mean_of(trace.stretch_sum[layer]) / static_cast<double>(trace.gain[layer].size(0));
    if (weights.process_noise.defined())
      found["process_noise"] = mean_of(bft::process_noise(weights.process_noise, config.filter));
    if (weights.recency.defined()) found["decay"] = mean_of(at::sigmoid(weights.recency));
    if (layer < model_.jacobian_factors().size()) found["jacobian_energy"] = model_.jacobian_factors()[layer].kept;
    for (const runfile::FilterCurve& curve : runfile::filter_curves()) {
      const auto value = found.find(curve.name);
      curves_[std::string(curve.name)].push_back(value != found.end() ? value->second : unknown);
    }
  }
}

std::string FilterTraining::warning() const {
  const auto shares = curves_.find("share_at_most");
  if (shares == curves_.end()) return {};
  const auto layers = static_cast<std::size_t>(model_.config().layers);
  for (std::size_t layer = 0; layer < layers; ++layer) {
    const double share = shares->second.at(shares->second.size() - layers + layer);
    if (share >= almost_all)
      return fmt::format(
          "{:.1f}% of the observation precisions of layer {} are at the bound --most-precision {}; they "
          "tell nothing there",
          100 * share, layer, model_.config().filter.most_precision);
  }
  return {};
}

Json FilterTraining::notes() const {
  if (!has_precision()) return nullptr;
  SasRecWeights weights = weights_;
  const Json tensors = training::tensors_to_json(sasrec_parameters(model_.config(), weights, WeightRole::constant));
  Json curves = Json::object();
  for (const auto& [name, values] : curves_) {
    for (const double value : values) curves[name].push_back(std::isnan(value) ? Json(nullptr) : Json(value));
  }
  return {{"started_from", started_from_}, {"batches_seen", batches_seen_}, {"tensors", tensors}, {"curves", curves}};
}

void FilterTraining::restore(const Json& notes) {
  if (!has_precision()) return;
  const at::NoGradGuard no_gradients;
  started_from_ = notes.at("started_from").get<double>();
  batches_seen_ = notes.at("batches_seen").get<std::int64_t>();
  training::tensors_from_json(notes.at("tensors"), sasrec_parameters(model_.config(), weights_, WeightRole::constant));
  curves_.clear();
  for (const auto& [name, values] : notes.at("curves").items()) {
    for (const Json& value : values)
      curves_[name].push_back(value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>());
  }
}

}  // namespace gainlens::recommend
