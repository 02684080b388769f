#include "training/filter_training.h"

#include "bft/filter_pass.h"
#include "bft/filter_step.h"
#include "bft/warm_up.h"
#include "core/check.h"
#include "runfile/recommend_run.h"
#include "runfile/training_files.h"
#include "training/training_folder.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <tuple>

namespace gainlens::training {
namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
/// Of a bound that was taken as a variance, in float32.
constexpr double rounding = 1e-6;
/// Shares of capped precisions that are worth a warning: of observations, and of the stream.
constexpr double almost_all = 0.99, half = 0.5;

/// The mean of the two middle ones of an even number.
double median_of(const at::Tensor& values) {
  const at::Tensor flat = values.flatten();
  const auto place = [&](std::int64_t k) { return std::get<0>(flat.kthvalue(k)).item<double>(); };
  return (place((flat.numel() + 1) / 2) + place(flat.numel() / 2 + 1)) / 2;
}

double mean_of(const at::Tensor& values) {
  return values.detach().to(at::kDouble).mean().item<double>();
}

Json number_or_null(double value) {
  return std::isnan(value) ? Json(nullptr) : Json(value);
}

double number_of(const Json& value) {
  return value.is_null() ? unknown : value.get<double>();
}

}  // namespace

void FilterTraining::Sum::add(const at::Tensor& values) {
  sum += values.detach().to(at::kDouble).sum().item<double>();
  count += static_cast<double>(values.numel());
}

double FilterTraining::Sum::mean() const {
  return count > 0 ? sum / count : unknown;
}

FilterTraining::FilterTraining(FilterHost& host, std::int64_t refresh_every, const std::vector<float>& bases,
                               std::int64_t tokens)
    : host_(host),
      precision_(host.initial_precision_weights()),
      layers_(host.layer_filter_weights()),
      refresh_every_(refresh_every),
      tokens_(tokens) {
  const at::NoGradGuard no_gradients;
  if (!bases.empty()) bases_ = at::constant_pad_nd(at::tensor(bases, at::kFloat), {0, tokens});
  if (precision_.base.defined()) precision_.base.copy_(bases_);
  if (host_.armed_filter().has_gain()) observe_evaluation();
}

void FilterTraining::observe_evaluation() {
  const double most = options().most_precision * (1 - rounding);
  const auto keep = [this](std::int64_t layer, std::string_view site, const char* curve, auto&& values) {
    evaluation_.observe(hooks::block_site(layer, site),
                        [this, layer, curve, values](const hooks::Site&, const at::Tensor& seen) {
                          seen_[{curve, layer}].add(values(seen));
                        });
  };
  const auto itself = [](const at::Tensor& x) { return x; };
  const auto squared = [](const at::Tensor& x) { return x.to(at::kDouble).square(); };
  const auto at_most = [most](const at::Tensor& x) { return x >= most; };
  const auto is_raised = [least = options().estimator_options().least_weight_share](const at::Tensor& x) {
    return x < least;
  };
  for (std::int64_t layer = 0; layer < std::ssize(layers_); ++layer) {
    keep(layer, bft::precision_site, "precision", itself);
    keep(layer, bft::precision_site, "share_of_precision_at_most", at_most);
    keep(layer, bft::observation_site, "observation_precision", itself);
    keep(layer, bft::observation_site, "share_at_most", at_most);
    keep(layer, bft::gain_site, "gain", itself);
    if (host_.has_signed_weights()) keep(layer, balance_site, "share_of_raised_sums", is_raised);
    keep(layer, "hook_resid_pre", "stream_size", squared);
    keep(layer, "attn.hook_z", "estimate_size", squared);
    keep(layer, "attn.hook_v", "value_size", squared);
    if (host_.armed_filter().has_jacobian() && layer + 1 < std::ssize(layers_))
      keep(layer, bft::stretch_site, "stretch", itself);
  }
}

void FilterTraining::refuse_nan(hooks::Hooks& hooks) const {
  if (!host_.armed_filter().has_gain()) return;
  for (std::int64_t layer = 0; layer < std::ssize(layers_); ++layer) {
    for (const std::string_view site : {bft::precision_site, bft::observation_site}) {
      hooks.observe(hooks::block_site(layer, site), [layer](const hooks::Site&, const at::Tensor& seen) {
        if (at::isnan(seen).any().item<bool>())
          throw_run_failed("training: a precision is NaN, first in layer {}", layer);
      });
    }
  }
}

void FilterTraining::prepare(std::int64_t step, const FilterPasses& passes) {
  steps_ = step + 1;
  if (!has_precision()) return;
  const at::NoGradGuard no_gradients;
  const bool due = step % refresh_every_ == 0;
  if (due) host_.refresh_jacobian();
  precision_.strength.fill_(bft::share_at(options(), step, refresh_every_));
  if (share() == 0) return;
  const bool first = started_from_ == 0;
  if (first) start_initial_precision(passes);
  if (due && !first && precision_.items.defined()) estimate_items(passes);
}

void FilterTraining::start_in_force(const FilterPasses& passes) {
  if (!has_precision()) return;
  const at::NoGradGuard no_gradients;
  host_.refresh_jacobian();
  precision_.strength.fill_(1);
  start_initial_precision(passes);
}

void FilterTraining::take_out_of_force() {
  const at::NoGradGuard no_gradients;
  if (has_precision()) precision_.strength.fill_(0);
}

std::vector<at::Tensor> FilterTraining::ranges() const {
  std::vector<at::Tensor> found{precision_.range};
  for (std::size_t layer = 0; layer + 1 < layers_.size(); ++layer)
    if (layers_[layer]->range.defined()) found.push_back(layers_[layer]->range);
  return found;
}

std::vector<double> FilterTraining::median_observations(std::size_t layers, const FilterPasses& passes) {
  const double share = this->share();
  precision_.strength.fill_(1);
  hooks::Hooks hooks;
  refuse_nan(hooks);
  std::vector<std::vector<at::Tensor>> observed(layers);
  for (std::size_t layer = 0; layer < layers; ++layer) {
    hooks.observe(
        hooks::block_site(static_cast<std::int64_t>(layer), bft::observation_site),
        [&, layer](const hooks::Site&, const at::Tensor& seen) { observed[layer].push_back(seen.flatten().clone()); });
  }
  passes.batch(hooks);
  precision_.strength.fill_(share);
  std::vector<double> medians;
  medians.reserve(layers);
  for (const std::vector<at::Tensor>& layer_values : observed) medians.push_back(median_of(at::cat(layer_values)));
  return medians;
}

void FilterTraining::start_initial_precision(const FilterPasses& passes) {
  started_from_ = 2.0 * static_cast<double>(host_.head_dim());
  if (!precision_.range.defined() && !precision_.items.defined()) return;
  const double given = options().initial_range;
  const std::vector<at::Tensor> ranges = this->ranges();
  const auto fill = [&](std::size_t layer, double range) {
    if (ranges[layer].defined()) ranges[layer].fill_(range);
  };
  if (given > 0 && !precision_.items.defined()) {
    for (std::size_t layer = 0; layer < ranges.size(); ++layer) fill(layer, given);
    return;
  }
  std::vector<double> observations(ranges.size(), started_from_);
  if (options().initial_gain_of_data && host_.armed_filter().has_gain()) {
    // All ids alike, so that precisions do not move the weights.
    for (std::size_t layer = 0; layer < ranges.size(); ++layer) fill(layer, 0);
    observations = median_observations(ranges.size(), passes);
  }
  started_from_ = observations[0];
  // The network of `content` adds softplus(0) to what the range gives.
  const double rest = options().initial_precision == bft::InitialPrecision::count ? 0 : std::numbers::ln2;
  const double median_base = bases_.defined() ? median_of(bases_.slice(0, 1, bases_.size(0) - tokens_)) : 1;
  const auto following = [&](std::size_t layer) {
    return bft::initial_range(observations[layer], options().initial_gain, median_base, rest,
                              options().least_precision);
  };
  for (std::size_t layer = 0; layer < ranges.size(); ++layer) fill(layer, following(layer));
  if (precision_.items.defined()) {
    const double range = given > 0 ? given : following(0);
    precision_.items.copy_((range * bases_ + rest).clamp(options().least_precision, options().most_precision));
  }
}

void FilterTraining::estimate_items(const FilterPasses& passes) {
  std::vector<at::Tensor> innovations, observed;
  const auto rows = [](const at::Tensor& x) { return x.flatten(0, 1).flatten(1); };
  hooks::Hooks hooks;
  refuse_nan(hooks);
  hooks.observe(hooks::block_site(0, "attn.hook_z"),
                [&](const hooks::Site&, const at::Tensor& seen) { innovations.push_back(rows(seen).clone()); });
  hooks.observe(hooks::block_site(0, bft::observation_site),
                [&](const hooks::Site&, const at::Tensor& seen) { observed.push_back(rows(seen).clone()); });
  const std::vector<at::Tensor> ids = passes.all(hooks);
  at::Tensor innovation = at::cat(innovations);
  innovation = innovation - innovation.mean(0);
  bft::EmOptions em;
  em.prior_precision = started_from_ * (1 - options().initial_gain) / options().initial_gain;
  em.least = options().least_precision;
  em.most = options().most_precision;
  const at::Tensor found =
      bft::em_step(precision_.items.to(at::kDouble), at::cat(ids), innovation, at::cat(observed), em).precision;
  precision_.items.copy_(found);
}

std::vector<at::Tensor>* FilterTraining::stretch_sums() {
  const bool kept = host_.armed_filter().has_running_jacobian() && share() > 0;
  return kept ? &stretch_sums_ : nullptr;
}

void FilterTraining::learn_from(std::int64_t positions, Replicas& replicas) {
  if (stretch_sums() == nullptr) return;
  const at::NoGradGuard no_gradients;
  const std::size_t predicting = layers_.size() - 1;
  std::vector<at::Tensor> sums;
  for (std::size_t layer = 0; layer < predicting; ++layer) {
    at::Tensor& sum = sums.emplace_back(at::zeros_like(layers_[layer]->stretch));
    for (std::size_t i = layer; i < stretch_sums_.size(); i += predicting)  // one part of the step after another
      sum = i == layer ? stretch_sums_[i].clone() : sum.add_(stretch_sums_[i]);
  }
  stretch_sums_.clear();
  const at::Tensor count = at::scalar_tensor(static_cast<double>(positions), at::kDouble);
  if (replicas.size() > 1) {
    std::vector<at::Tensor> shared = sums;
    shared.push_back(count);
    replicas.sum(shared);
  }
  const double memory = bft::running_memory(batches_seen_++);
  for (std::size_t layer = 0; layer < predicting; ++layer)
    layers_[layer]->stretch.mul_(memory).add_(sums[layer] / count.item<double>(), 1 - memory);
}

void FilterTraining::share_seen(Replicas& replicas) {
  std::vector<double> numbers;  // sum and count by curve and layer, also of what this process has not seen
  for (const runfile::FilterCurve& curve : runfile::filter_curves()) {
    for (std::int64_t layer = 0; layer < std::ssize(layers_); ++layer) {
      const Sum& own = seen_[{std::string(curve.name), layer}];
      numbers.insert(numbers.end(), {own.sum, own.count});
    }
  }
  replicas.sum({at::from_blob(numbers.data(), {std::ssize(numbers)}, at::kDouble)});
  auto number = numbers.begin();
  for (const runfile::FilterCurve& curve : runfile::filter_curves()) {
    for (std::int64_t layer = 0; layer < std::ssize(layers_); ++layer, number += 2)
      seen_[{std::string(curve.name), layer}] = {number[0], number[1]};
  }
}

void FilterTraining::record(Replicas* replicas) {
  if (!host_.armed_filter().has_gain()) return;
  const at::NoGradGuard no_gradients;
  if (replicas != nullptr && replicas->size() > 1) share_seen(*replicas);
  const std::vector<double> energy = host_.jacobian_energy();
  for (std::int64_t layer = 0; layer < std::ssize(layers_); ++layer) {
    const auto index = static_cast<std::size_t>(layer);
    const bft::FilterWeights& weights = *layers_[index];
    std::map<std::string_view, double> found;
    if (weights.process_noise.defined())
      found["process_noise"] = mean_of(bft::process_noise(weights.process_noise, options()));
    if (weights.recency.defined()) found["decay"] = mean_of(at::sigmoid(weights.recency));
    if (index < energy.size()) found["jacobian_energy"] = energy[index];
    for (const runfile::FilterCurve& curve : runfile::filter_curves()) {
      const std::string name(curve.name);
      const auto value = found.find(curve.name);
      double mean = value != found.end() ? value->second : seen_[{name, layer}].mean();
      if (name.ends_with("_size")) mean = std::sqrt(mean);  // of squares
      curves_[name].push_back(mean);
    }
  }
  recorded_at_.push_back(steps_);
  seen_.clear();
}

std::string FilterTraining::csv() const {
  return runfile::filter_csv({recorded_at_, layers_.size(), curves_});
}

std::string FilterTraining::warning() const {
  std::vector<std::string> found;
  const auto add = [&](const char* curve, double least, const auto& words) {
    const auto shares = curves_.find(curve);
    if (shares == curves_.end()) return;
    for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
      const double share = shares->second.at(shares->second.size() - layers_.size() + layer);
      if (!(share >= least)) continue;  // NaN while the filter warms up
      found.push_back(fmt::format("{:.1f}% of {} are at the bound --most-precision {}", 100 * share, words(layer),
                                  options().most_precision));
      return;
    }
  };
  add("share_at_most", almost_all,
      [](std::size_t layer) { return fmt::format("the observation precisions of layer {}", layer); });
  add("share_of_precision_at_most", half, [](std::size_t layer) {
    return layer == 0 ? std::string("the initial precisions tau")
                      : fmt::format("the precisions of the stream before layer {}", layer);
  });
  if (found.empty()) return {};
  return fmt::format("{}; they tell nothing there", fmt::join(found, ", and "));
}

Json FilterTraining::notes() const {
  if (!has_precision()) return nullptr;
  Json curves = Json::object();
  for (const auto& [name, values] : curves_) {
    for (const double value : values) curves[name].push_back(number_or_null(value));
  }
  return {{"started_from", started_from_},
          {"batches_seen", batches_seen_},
          {"tensors", tensors_to_json(host_.filter_constants())},
          {"curves", curves},
          {"recorded_at", recorded_at_}};
}

void FilterTraining::restore(const Json& notes) {
  if (!has_precision()) return;
  const at::NoGradGuard no_gradients;
  batches_seen_ = notes.at("batches_seen").get<std::int64_t>();
  tensors_from_json(notes.at("tensors"), host_.filter_constants());
  curves_.clear();
  recorded_at_.clear();
  if (notes.contains("points")) {  // as decoders stored them before version 2 of these notes
    started_from_ = notes.at("started").get<bool>() ? 2.0 * static_cast<double>(host_.head_dim()) : 0;
    restore_points(notes.at("points"));
    runfile::complete_filter(curves_);
    return;
  }
  started_from_ = notes.at("started_from").get<double>();
  for (const auto& [name, values] : notes.at("curves").items()) {
    for (const Json& value : values) curves_[name].push_back(number_of(value));
  }
  runfile::complete_filter(curves_);
  if (notes.contains("recorded_at"))  // absent in older notes of recommenders, which need it for no file
    recorded_at_ = notes.at("recorded_at").get<std::vector<std::int64_t>>();
}

void FilterTraining::restore_points(const Json& points) {
  const std::vector<std::string> columns = {"precision",     "observation_precision", "gain",
                                            "share_at_most", "process_noise",         "stretch",
                                            "decay",         "jacobian_energy"};
  for (const Json& point : points) {
    if (point.at(1).get<std::int64_t>() == 0) recorded_at_.push_back(point.at(0).get<std::int64_t>());
    curves_["share_of_precision_at_most"].push_back(unknown);
    for (std::size_t i = 0; i < columns.size(); ++i) curves_[columns[i]].push_back(number_of(point.at(2 + i)));
  }
}

}  // namespace gainlens::training
