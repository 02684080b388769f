#include "language/filter_training.h"

#include "bft/filter_step.h"
#include "bft/initial_precision.h"
#include "bft/warm_up.h"
#include "core/check.h"
#include "models/checkpoint/initial_weights.h"
#include "training/tensor_notes.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

namespace gainlens::language {
namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
/// Of a bound that was taken as a variance, in float32.
constexpr double rounding = 1e-6;

/// The numbers of a point with their names, in the order of the columns.
template <typename Point>
auto numbers_of(Point& point) {
  return std::array{std::pair{"precision", &point.precision},
                    std::pair{"observation_precision", &point.observation_precision},
                    std::pair{"gain", &point.gain},
                    std::pair{"share_at_most", &point.share_at_most},
                    std::pair{"process_noise", &point.process_noise},
                    std::pair{"stretch", &point.stretch},
                    std::pair{"decay", &point.decay},
                    std::pair{"jacobian_energy", &point.jacobian_energy}};
}

double mean_of(const at::Tensor& values) {
  return values.mean(at::kDouble).item<double>();
}

}  // namespace

std::string filter_csv(const std::vector<FilterPoint>& points) {
  std::string text = "step,layer";
  const FilterPoint any;
  for (const auto& [name, number] : numbers_of(any)) text += fmt::format(",{}", name);
  text += "\n";
  for (const FilterPoint& point : points) {
    text += fmt::format("{},{}", point.step, point.layer);
    for (const auto& [name, number] : numbers_of(point))
      text += std::isnan(*number) ? "," : fmt::format(",{:.6g}", *number);
    text += "\n";
  }
  return text;
}

FilterTraining::FilterTraining(models::Decoder& decoder, const models::DecoderConfig& config,
                               models::DecoderWeights& weights, std::int64_t refresh_every)
    : decoder_(decoder), config_(config), weights_(weights), refresh_every_(refresh_every) {
  if (!config_.filter) return;
  if (config_.has_filter_jacobian() && config_.layers > 1) observe(training_, "mlp.hook_stretch", stretch_, true);
  observe(evaluation_, "hook_precision", precision_, false);
  observe(evaluation_, "attn.hook_observation_precision", observation_, false);
  observe(evaluation_, "attn.hook_gain", gain_, false);
  const double most = config_.filter->most_precision * (1 - rounding);
  for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
    const hooks::Glob glob(hooks::block_site(layer, "attn.hook_observation_precision").name);
    evaluation_.observe(glob, [this, layer, most](const hooks::Site&, const at::Tensor& seen) {
      Sum& sum = at_most_[layer];
      const at::Tensor share = (seen >= most).to(at::kDouble).sum();
      sum.values = sum.values.defined() ? sum.values + share : share;
      sum.count += static_cast<double>(seen.numel());
    });
  }
}

void FilterTraining::observe(hooks::Hooks& hooks, std::string_view site, std::map<std::int64_t, Sum>& sums,
                             bool by_dimension) const {
  for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
    if (site == "mlp.hook_stretch" && layer + 1 == config_.layers) continue;
    hooks.observe(hooks::Glob(hooks::block_site(layer, site).name),
                  [&sums, layer, by_dimension](const hooks::Site&, const at::Tensor& seen) {
                    const at::NoGradGuard no_gradients;
                    const at::Tensor wide = seen.detach().to(at::kDouble);
                    const at::Tensor added = by_dimension ? wide.sum(at::IntArrayRef{0, 1}) : wide.sum();
                    Sum& sum = sums[layer];
                    sum.values = sum.values.defined() ? sum.values + added : added;
                    sum.count += static_cast<double>(by_dimension ? seen.numel() / seen.size(-1) : seen.numel());
                  });
  }
}

void FilterTraining::prepare(std::int64_t step, const at::Tensor& inputs) {
  steps_ = step + 1;
  if (!config_.filter) return;
  const at::NoGradGuard no_gradients;
  if (step % refresh_every_ == 0) decoder_.refresh_jacobian();
  const double share = bft::share_at(*config_.filter, step);
  weights_.precision.strength.fill_(share);
  if (share > 0 && !started_) start_range(inputs);
}

void FilterTraining::start_range(const at::Tensor& inputs) {
  started_ = true;
  if (!weights_.precision.range.defined()) return;
  const bft::FilterOptions& filter = *config_.filter;
  double observed = 2.0 * static_cast<double>(config_.head_dim);
  if (filter.initial_gain_of_data) {
    // All tokens alike, so that precisions do not move the weights.
    const double share = weights_.precision.strength.item<double>();
    weights_.precision.range.zero_();
    weights_.precision.strength.fill_(1);
    hooks::Hooks first;
    first.observe(hooks::Glob(hooks::block_site(0, "attn.hook_observation_precision").name),
                  [&observed](const hooks::Site&, const at::Tensor& seen) { observed = seen.median().item<double>(); });
    decoder_.forward({inputs}, {.stop_at_layer = 1}, first);
    weights_.precision.strength.fill_(share);
  }
  // tau_base of every token is 1.
  weights_.precision.range.fill_(
      bft::initial_range(observed, filter.initial_gain, 1, std::numbers::ln2, filter.least_precision));
}

void FilterTraining::learn() {
  if (stretch_.empty()) return;
  const at::NoGradGuard no_gradients;
  const double memory = bft::running_memory(batches_seen_++);
  for (auto& [layer, sum] : stretch_) {
    at::Tensor& mean = weights_.layers[static_cast<std::size_t>(layer)].filter.stretch;
    if (mean.defined()) mean.mul_(memory).add_(sum.values / sum.count, 1 - memory);
  }
  stretch_.clear();
}

void FilterTraining::record() {
  if (!config_.filter) return;
  const std::vector<double> energy = decoder_.jacobian_energy();
  const auto taken = [](std::map<std::int64_t, Sum>& sums, std::int64_t layer) {
    const auto found = sums.find(layer);
    return found == sums.end() ? unknown : found->second.values.item<double>() / found->second.count;
  };
  for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
    const auto index = static_cast<std::size_t>(layer);
    const models::FilterWeights& weights = weights_.layers[index].filter;
    FilterPoint point{.step = steps_, .layer = layer};
    point.precision = taken(precision_, layer);
    point.observation_precision = taken(observation_, layer);
    point.gain = taken(gain_, layer);
    point.share_at_most = taken(at_most_, layer);
    const auto of = [](const at::Tensor& parameter, const auto& value) {
      return parameter.defined() ? mean_of(value(parameter.detach())) : unknown;
    };
    point.process_noise =
        of(weights.process_noise, [&](const at::Tensor& x) { return bft::process_noise(x, *config_.filter); });
    point.stretch = of(weights.stretch, [](const at::Tensor& x) { return x; });
    point.decay = of(weights.recency, [](const at::Tensor& x) { return at::sigmoid(x); });
    point.jacobian_energy = index < energy.size() ? energy[index] : unknown;
    points_.push_back(point);
  }
  for (auto* sums : {&precision_, &observation_, &gain_, &at_most_}) sums->clear();
}

Json FilterTraining::notes() const {
  if (!config_.filter) return nullptr;
  const Json tensors =
      training::tensors_to_json(models::decoder_parameters(config_, weights_, models::WeightRole::constant));
  Json points = Json::array();
  for (const FilterPoint& point : points_) {
    Json numbers = {point.step, point.layer};
    for (const auto& [name, number] : numbers_of(point))
      numbers.push_back(std::isnan(*number) ? Json(nullptr) : Json(*number));
    points.push_back(numbers);
  }
  return {{"started", started_}, {"batches_seen", batches_seen_}, {"tensors", tensors}, {"points", points}};
}

void FilterTraining::restore(const Json& notes) {
  if (!config_.filter) return;
  const at::NoGradGuard no_gradients;
  started_ = notes.at("started").get<bool>();
  batches_seen_ = notes.at("batches_seen").get<std::int64_t>();
  training::tensors_from_json(notes.at("tensors"),
                              models::decoder_parameters(config_, weights_, models::WeightRole::constant));
  points_.clear();
  for (const Json& stored : notes.at("points")) {
    FilterPoint point{.step = stored.at(0).get<std::int64_t>(), .layer = stored.at(1).get<std::int64_t>()};
    std::size_t place = 2;
    for (const auto& [name, number] : numbers_of(point)) {
      const Json& value = stored.at(place++);
      *number = value.is_null() ? unknown : value.get<double>();
    }
    points_.push_back(point);
  }
}

}  // namespace gainlens::language
