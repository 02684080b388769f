#include "depth/measure_depth.h"

#include "depth/feedforward_branch.h"
#include "depth/perturbed_stream.h"
#include "models/decoder/attention_ops.h"
#include "sweep/moments.h"
#include "sweep/one_sequence.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <array>
#include <utility>

namespace gainlens::depth {
namespace {

using runfile::DepthReading;

constexpr std::uint64_t draws_seed = 0;

/// The usual attention. Keeps what it shows at the queries.
class ReadAttention : public hooks::AttentionOp {
 public:
  ReadAttention(std::vector<LayerReading>& readings, at::Tensor queries)
      : readings_(readings), queries_(std::move(queries)) {}

  at::Tensor run(std::int64_t layer, const hooks::Qkv& qkv, const kernels::AttentionOptions& options) override {
    const hooks::ObservedAttention found = usual_.run_with_moments(layer, qkv, options, {});
    LayerReading& reading = readings_[static_cast<std::size_t>(layer)];
    const auto at_queries = [&](const at::Tensor& by_head) {  // [1, head, position, ..] -> [query, head, ..]
      return by_head.squeeze(0).transpose(0, 1).index_select(0, queries_).to(at::kDouble);
    };
    reading.n_eff = at_queries(found.n_eff);
    reading.residual = at_queries(found.residual);
    reading.estimate = at_queries(found.output);
    reading.value_variance = qkv.value.squeeze(0).to(at::kDouble).var(/*dim=*/1, /*unbiased=*/false);
    return found.output;
  }

 private:
  std::vector<LayerReading>& readings_;
  at::Tensor queries_;
  models::UsualAttention usual_;
};

/// P of every reading and start, [query, width].
using Carried = std::array<std::array<at::Tensor, runfile::depth_starts.size()>, runfile::depth_readings.size()>;

template <typename Of>
runfile::DepthCarried quantiles_by(const Carried& carried, const Of& of) {
  runfile::DepthCarried found{};
  for (std::size_t reading = 0; reading < carried.size(); ++reading) {
    for (std::size_t start = 0; start < carried[reading].size(); ++start)
      found[reading][start] = quantiles_of(of(carried[reading][start]));
  }
  return found;
}

/// The stream's own P of gain-one at the embedding's variance: what is compared with drawn errors.
const at::Tensor& compared(const Carried& carried) {
  return carried[static_cast<std::size_t>(DepthReading::gain_one)][runfile::depth_start];
}

/// Quantiles of found / expected over the coordinates in which errors are expected.
runfile::DepthQuantiles quantiles_of_ratio(const at::Tensor& found, const at::Tensor& expected) {
  const at::Tensor known = expected > 0;
  return quantiles_of(found.masked_select(known) / expected.masked_select(known));
}

/// One layer after the other.
class DepthWalk {
 public:
  DepthWalk(const models::DecoderConfig& config, const DepthOptions& options, const DepthReadings& readings)
      : config_(config), options_(options), readings_(readings) {
    const std::int64_t queries = readings.layers.front().middle.size(0);
    for (auto& by_start : carried_) {
      for (std::size_t start = 0; start < by_start.size(); ++start)
        by_start[start] = (runfile::depth_starts[start] * readings.start).expand({queries, -1});
    }
    alone_ = compared(carried_);
  }

  runfile::DepthLayer pass(std::int64_t layer, models::LayerWeights weights) {
    const LayerReading& reading = readings_.layers[static_cast<std::size_t>(layer)];
    const ObservedVariance observed = observed_variance(config_, weights, reading);
    const at::Tensor& noise = observed.independent;
    runfile::DepthLayer found{.layer = layer};
    found.variance = quantiles_by(carried_, [](const at::Tensor& variance) { return variance; });
    found.gain = quantiles_by(carried_, [&](const at::Tensor& variance) { return gain(variance, noise, layer); });
    found.observed = quantiles_of(noise);
    found.bound = quantiles_of(observed.bound);

    const FeedForwardBranch branch(config_, layer, std::move(weights));
    const at::Tensor jacobian = branch.jacobian_diagonal(reading.middle), stretched = stretch(jacobian);
    found.jacobian = quantiles_of(jacobian);
    for (std::size_t rule = 0; rule < carried_.size(); ++rule) {
      for (at::Tensor& variance : carried_[rule]) variance = updated(variance, noise, static_cast<DepthReading>(rule));
    }
    if (options_.truth) {
      found.truth.emplace();
      found.truth->rule_error = rule_error(branch, reading.middle, stretched);
    }
    for (auto& by_start : carried_) {
      for (at::Tensor& variance : by_start) variance = stretched * variance;
    }
    alone_ = stretched * alone_;
    sums_.push_back(compared(carried_).mean(0));
    alone_means_.push_back(alone_.mean(0));
    return found;
  }

  const Carried& carried() const { return carried_; }
  /// Mean over queries of P of gain-one after each layer, [width].
  const std::vector<at::Tensor>& sums() const { return sums_; }
  /// The same without what attention adds.
  const std::vector<at::Tensor>& alone() const { return alone_means_; }

 private:
  runfile::DepthQuantiles rule_error(const FeedForwardBranch& branch, const at::Tensor& stream,
                                     const at::Tensor& stretched) const {
    const std::int64_t queries = stream.size(0);
    const auto width = static_cast<double>(stream.size(1));
    const double products = width * width * static_cast<double>(branch.neurons());
    const auto most = static_cast<std::int64_t>(
        std::clamp(options_.truth_products / products, 1.0, static_cast<double>(options_.truth_queries)));
    const std::int64_t step = std::max<std::int64_t>((queries + most - 1) / most, 1);
    const auto some = [&](const at::Tensor& rows) { return rows.slice(0, 0, queries, step); };
    const at::Tensor variance = some(compared(carried_));
    const at::Tensor truth = branch.carried(some(stream), variance).mean(0);
    return quantiles_of_ratio((some(stretched) * variance).mean(0) - truth, truth);
  }

  const models::DecoderConfig& config_;
  const DepthOptions& options_;
  const DepthReadings& readings_;
  Carried carried_;
  at::Tensor alone_;
  std::vector<at::Tensor> sums_, alone_means_;
};

}  // namespace

at::Tensor measured_queries(std::int64_t length, std::int64_t most) {
  const std::int64_t first = sweep::last_quarter_begin(length), count = length - first;
  const std::int64_t step = (count + most - 1) / most;
  return at::arange(first, length, step, at::kLong);
}

DepthReadings read_layers(hooks::HookedModel& model, const hooks::Tokens& tokens, const at::Tensor& queries,
                          const DepthOptions& options) {
  DepthReadings readings;
  readings.layers.resize(static_cast<std::size_t>(options.layers));
  hooks::Hooks hooks;
  const auto rows = [&](const at::Tensor& seen) { return seen.squeeze(0).index_select(0, queries).to(at::kDouble); };
  hooks.observe(hooks::block_site(0, "hook_resid_pre"), [&](const hooks::Site&, const at::Tensor& hidden) {
    readings.start = hidden.squeeze(0).to(at::kDouble).var(/*dim=*/0, /*unbiased=*/false);
  });
  for (std::int64_t layer = 0; layer < options.layers; ++layer) {
    LayerReading& reading = readings.layers[static_cast<std::size_t>(layer)];
    hooks.observe(hooks::block_site(layer, "hook_resid_mid"),
                  [&](const hooks::Site&, const at::Tensor& hidden) { reading.middle = rows(hidden); });
    if (!model.layout().gated) continue;
    hooks.observe(hooks::block_site(layer, "attn.hook_gate"),
                  [&](const hooks::Site&, const at::Tensor& gate) { reading.gate = rows(gate); });
  }
  ReadAttention attention(readings.layers, queries);
  hooks::ForwardOptions forward;
  forward.attention = &attention;
  forward.stop_at_layer = options.layers;
  forward.allow_extrapolation = options.allow_extrapolation;
  model.forward(tokens, forward, hooks);
  return readings;
}

runfile::DepthChunk measure_depth(hooks::HookedModel& model, const models::DecoderConfig& config,
                                  const LayerLoader& weights, const data::Chunk& chunk, const DepthOptions& options) {
  const c10::InferenceMode inference;
  const hooks::Tokens tokens = sweep::one_sequence(chunk.tokens);
  const at::Tensor queries = measured_queries(chunk.length, options.queries);
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(draws_seed);
  const DepthReadings readings = read_layers(model, tokens, queries, options);
  runfile::DepthChunk found{.length = chunk.length, .sample = chunk.sample, .queries = queries.size(0)};
  DepthWalk walk(config, options, readings);
  for (std::int64_t layer = 0; layer < options.layers; ++layer)
    found.layers.push_back(walk.pass(layer, weights(layer)));
  found.last = quantiles_by(walk.carried(), [](const at::Tensor& variance) { return variance; });
  if (!options.truth) return found;
  const std::vector<at::Tensor> moved = carried_by_model(
      model, tokens, queries,
      {readings.start, options.perturbation, options.draws, options.layers, options.allow_extrapolation}, generator);
  for (std::size_t layer = 0; layer < moved.size(); ++layer) {
    found.layers[layer].truth->sum_ratio = quantiles_of_ratio(moved[layer], walk.sums()[layer]);
    found.layers[layer].truth->carried_ratio = quantiles_of_ratio(moved[layer], walk.alone()[layer]);
  }
  return found;
}

}  // namespace gainlens::depth
