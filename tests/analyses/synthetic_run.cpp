#include "analyses/synthetic_run.h"

#include "core/check.h"
#include "runfile/schema.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace gainlens::testing {
namespace {

/// A fixed scatter in [-1, 1] that differs between cells.
double scatter(std::int64_t a, std::int64_t b, std::int64_t c = 0) {
  return std::sin(static_cast<double>(12 * a + 7 * b + 5 * c) + 0.3 * static_cast<double>(a * b));
}

double sink_mass(const SyntheticRun& run, std::int64_t layer, std::int64_t head) {
  if (layer == run.layers / 2 && head == 0) return 0.6;
  if (layer == run.layers / 2 && head == run.heads - 1) return 0.2;
  return 0.01 + 0.008 * scatter(layer, head);
}

double n_eff(const SyntheticRun& run, const CellKey& key) {
  const double base = 4.0 + 3.0 * static_cast<double>(key.layer) + scatter(key.layer, key.head);
  const double growth = std::sqrt(static_cast<double>(key.length) / 1024.0);
  return 1 + base * growth * (1 - sink_mass(run, key.layer, key.head)) *
                 (1 + 0.03 * scatter(key.layer, key.head, key.sample + 1));
}

double residual(const SyntheticRun& run, const CellKey& key) {
  return (0.5 + 0.2 * static_cast<double>(key.layer)) * (1 - sink_mass(run, key.layer, key.head)) *
         (1 + 0.1 * scatter(key.head, key.layer));
}

double precision(const SyntheticRun& run, const CellKey& key) {
  return (n_eff(run, key) + 1) / (residual(run, key) + 1.0 / static_cast<double>(run.head_dim));
}

double gain(double observation_precision) {
  return observation_precision / (1 + observation_precision);
}

/// The sink lemma of a head with mu = 0.8. The other values average to a vector of norm 0.5, parallel to the value of
/// key 0 (norm 0.15).
std::optional<double> sink_lemma(std::string_view name, double mass) {
  constexpr double first = 0.15, others = 0.5, least = 0.8;
  const double estimate = (1 - mass) * others + mass * first, gained = 0.9 * estimate;
  const double bound = 1 - (estimate + first) / others, gain_bound = 1 - (gained + first) / others;
  if (name == "estimate_norm") return estimate;
  if (name == "gained_estimate_norm") return gained;
  if (name == "without_first_norm") return others;
  if (name == "sink_bound") return std::max(0.0, bound);
  if (name == "sink_bound_gain") return std::max(0.0, gain_bound);
  if (name == "sink_bound_vacuous") return bound > 0 ? 0 : 1;
  if (name == "sink_bound_gain_violated") return bound > 0 ? 0.25 : 0;
  if (name == "sink_bound_slack") return bound > 0 ? mass - bound : std::numeric_limits<double>::quiet_NaN();
  if (name == "sink_bound_slack_min") return mass - bound - 0.01;
  if (name == "sink_alignment") return others / least;
  return std::nullopt;
}

double summary(const SyntheticRun& run, std::string_view name, const CellKey& key) {
  if (name.ends_with("_var")) {
    const double mean = summary(run, name.substr(0, name.size() - 4), key);
    return 0.04 * mean * mean;
  }
  const double mass = sink_mass(run, key.layer, key.head);
  if (const auto lemma = sink_lemma(name, mass)) return *lemma;
  if (name == "n_eff" || name == "without_first_n_eff" || name == "without_sinks_n_eff") return n_eff(run, key);
  if (name == "entropy") return std::log(n_eff(run, key)) + 0.4;
  if (name == "residual") return residual(run, key);
  if (name == "observation_precision") return precision(run, key);
  if (name == "log_observation_precision") return std::log(precision(run, key));
  if (name == "kalman_gain" || name == "kalman_gain_half") return gain(precision(run, key));
  if (name == "kalman_gain_scaled" || name == "kalman_gain_scaled_half") return gain(precision(run, key) * 0.3);
  if (name == "without_first_kalman_gain" || name == "without_sinks_kalman_gain")
    return gain(precision(run, key) * (1 - mass));
  if (name == "gate")
    return 0.28 + 0.004 * std::log2(static_cast<double>(key.length) / 1024.0) +
           0.03 * scatter(key.layer, key.head, key.sample);
  if (name == "bos_mass") return mass;
  if (name == "first_mass" || name == "column_mean") return key.last == 0 ? mass : 0.005;
  ASSERT(false, "there is no planted value of {}", name);
}

/// Heads that give key 0 a tenth of their attention or more have it as their one sink.
double sink_key(const SyntheticRun& run, std::string_view name, const CellKey& key) {
  const double mass = sink_mass(run, key.layer, key.head);
  const bool integer = name == "position" || name == "token" || name == "queries" || name == "stream_dimension";
  if (key.last > 0 || mass < runfile::min_stored_mean || key.length < runfile::min_sink_queries)
    return integer ? -1 : std::numeric_limits<double>::quiet_NaN();
  if (name == "position") return 0;
  if (name == "token") return static_cast<double>(run.bos.value_or(7));
  if (name == "queries") return static_cast<double>(key.length);
  if (name == "stream_dimension") return 5;
  if (name == "value_norm_ratio") return 0.15;
  if (name == "key_norm_ratio") return 1.2;
  if (name == "key_query_cosine") return 0.4;
  if (name == "stream_ratio") return 20;
  if (name == "stream_ratio_after") return 25;
  return name == "stream_cosine" ? 1 : mass;
}

/// The stream of every layer has its largest entry, 500, at position 0 and in dimension 5.
double stream(std::string_view name, const CellKey& key) {
  if (name == "value") return 500.0 / static_cast<double>(1 + 10 * key.head);
  if (name == "median") return 20;
  if (name == "dimension") return 5;
  return static_cast<double>(key.head);  // position and token
}

/// Calls `visit(key)` for every entry of a [layer, head, last] or [layer, head] array, in storage order.
void fill(runfile::Array& array, CellKey key, const std::function<double(const CellKey&)>& number) {
  std::size_t offset = 0;
  const auto extent = [&](std::size_t axis) { return axis < array.shape.size() ? array.shape[axis] : 1; };
  for (key.layer = 0; key.layer < extent(0); ++key.layer) {
    for (key.head = 0; key.head < extent(1); ++key.head) {
      for (key.last = 0; key.last < extent(2); ++key.last) array.values.at(offset++) = number(key);
    }
  }
}

runfile::ShardResult shard(const SyntheticRun& run, const runfile::ShardKey& key) {
  runfile::ShardResult result = runfile::blank_result(request_of(run), key.length);
  for (const runfile::Group group : runfile::groups) {
    for (auto& [name, array] : runfile::entries(result, group)) {
      const std::string path = fmt::format("{}/{}", runfile::name_of(group), name);
      fill(array, CellKey{path, key.length, key.sample, 0, 0, 0}, [&](const CellKey& cell) {
        const auto given = run.value ? run.value(cell) : std::nullopt;
        return given ? *given : planted(run, cell);
      });
    }
  }
  for (std::size_t i = 0; i < result.sink_text.size(); ++i) {
    const double position = result.sinks.at("position").values[i];
    if (position >= 0) result.sink_text[i] = run.text(key, static_cast<std::int64_t>(position));
  }
  return result;
}

}  // namespace

double planted(const SyntheticRun& run, const CellKey& key) {
  if (key.name == "values/first_norm") return key.last == 0 ? 0.15 : 0.9 + 0.05 * scatter(key.last, key.layer);
  if (key.name == "values/norm")
    return 1.0 + 0.1 * static_cast<double>(key.layer) + 0.05 * scatter(key.layer, key.head);
  if (key.name == "values/min_norm") return 0.8;
  if (key.name == "values/variance") return 0.02 * static_cast<double>(key.layer + 1);
  if (key.name == "summary/nll") return 3.0 - 0.1 * std::log2(static_cast<double>(key.length) / 1024.0);
  if (key.name.starts_with("sinks/")) return sink_key(run, key.name.substr(6), key);
  if (key.name.starts_with("stream/")) return stream(key.name.substr(7), key);
  if (key.name.starts_with("profile/")) return 0.5;  // no analysis reads the profiles
  return summary(run, key.name.substr(key.name.find('/') + 1), key);
}

runfile::Request request_of(const SyntheticRun& run) {
  runfile::Request request;
  request.version = run.version;
  request.model = {{"config.json", std::string(64, 'a')}, {"model.safetensors", std::string(64, run.weights)}};
  request.family = run.family;
  request.tokenizer = std::string(64, 'c');
  request.text = std::string(64, 'd');
  request.lengths = run.lengths;
  request.samples = run.samples;
  request.nested = run.nested;
  request.spread = run.spread;
  request.bos = run.bos;
  request.bos_policy = run.bos_policy;
  for (std::int64_t layer = 0; layer < run.layers; ++layer) request.layers.push_back(run.first_layer + layer);
  request.heads = run.heads;
  request.kv_heads = run.kv_heads;
  request.layer_kv_heads = run.layer_kv_heads;
  request.head_dim = run.head_dim;
  request.attention =
      run.attention.empty() ? std::vector<std::string>(static_cast<std::size_t>(run.layers), "global") : run.attention;
  request.gated = run.gated;
  request.dtype = "float64";
  request.device = "cpu";
  request.threads = 2;
  request.statistics = run.statistics;
  request.max_positions = run.max_positions;
  return request;
}

runfile::RunReader write_run(const std::filesystem::path& folder, const SyntheticRun& run) {
  auto writer = runfile::RunFolder::open_or_resume(folder, request_of(run));
  for (const runfile::ShardKey& key : writer.missing()) {
    if (!run.missing.contains(key)) writer.commit(key, shard(run, key));
  }
  writer.combine();
  return runfile::RunReader::open(folder);
}

SyntheticRun report_run(std::int64_t samples) {
  SyntheticRun run;
  run.lengths = {64, 128};
  run.samples = samples;
  run.layers = 3;
  run.heads = 2;
  run.kv_heads = 1;
  return run;
}

}  // namespace gainlens::testing
