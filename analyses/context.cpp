#include "analyses/context.h"

#include "analyses/statistics.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

namespace gainlens::analyses {
namespace {

using ByChunk = std::map<std::int64_t, double>;  // sample number -> value

ByChunk transformed(const Maybe<Aggregate>& aggregate, const std::function<double(double)>& transform) {
  ByChunk values;
  if (!aggregate) return values;
  for (std::size_t i = 0; i < aggregate->chunks.size(); ++i) {
    const double value = transform(aggregate->chunk_means[i]);
    if (std::isfinite(value)) values[aggregate->chunks[i]] = value;
  }
  return values;
}

ByChunk minus(const ByChunk& a, const ByChunk& b) {
  ByChunk difference;
  for (const auto& [sample, value] : a) {
    if (const auto other = b.find(sample); other != b.end()) difference[sample] = value - other->second;
  }
  return difference;
}

Change no_change(const std::string& reason, double margin) {
  return {Measured::none(reason), Maybe<Interval>::none(reason), 0, test_equivalence({}, margin, reason)};
}

Change summarise(const ByChunk& differences, const std::string& reason, double margin, bool shortest) {
  if (differences.empty()) return no_change(reason, margin);
  std::vector<double> values;
  for (const auto& [sample, value] : differences) values.push_back(value);
  const Equivalence flat = shortest ? test_equivalence({}, margin, "this is the shortest length") : test_equivalence(values, margin);
  return {mean(values), mean_interval(values), values.size(), flat};
}

/// Why chunk means of `shorter` and `longer` give no pair, if they give none.
std::string no_pair_reason(const Maybe<Aggregate>& shortest, const Maybe<Aggregate>& here) {
  if (!here) return here.reason();
  if (!shortest) return shortest.reason();
  return "no chunk has a finite value both here and at the shortest length";
}

void compare_with_shortest(ContextPoint& point, const ContextPoint& shortest, double margin) {
  const auto logit = [](double g) { return std::log(g / (1 - g)); };
  const auto log = [](double x) { return std::log(x); };
  const ByChunk gate = minus(transformed(point.gate, logit), transformed(shortest.gate, logit));
  const ByChunk precision = minus(transformed(point.observation_precision, log), transformed(shortest.observation_precision, log));
  const std::string no_gate = no_pair_reason(shortest.gate, point.gate);
  const std::string no_precision = no_pair_reason(shortest.observation_precision, point.observation_precision);
  const bool same = point.length.index == shortest.length.index;
  point.logit_gate = summarise(gate, no_gate, margin, same);
  point.log_precision = summarise(precision, no_precision, margin, same);
  point.difference = summarise(minus(gate, precision), gate.empty() ? no_gate : no_precision, margin, same);

  if (!point.observation_precision || !shortest.observation_precision || !(shortest.observation_precision->mean > 0)) {
    const std::string reason =
        point.observation_precision && shortest.observation_precision ? "lambda_obs at the shortest length is not positive" : no_precision;
    point.precision_ratio = point.precision_ratio_deviation = Measured::none(reason);
    point.precision_ratio_interval = Maybe<Interval>::none(reason);
    return;
  }
  const double unit = shortest.observation_precision->mean;
  point.precision_ratio = point.observation_precision->mean / unit;
  const Measured& deviation = point.observation_precision->deviation;
  point.precision_ratio_deviation = deviation ? Measured(*deviation / unit) : deviation;
  const Maybe<Interval>& change = point.log_precision.interval;
  point.precision_ratio_interval = change ? Maybe<Interval>(Interval{std::exp(change->low), std::exp(change->high)}) : change;
}

ContextPoint read_point(const runfile::RunReader& reader, const Length& length, const std::vector<std::size_t>& layers, double margin) {
  const Measured unset = Measured::none("not compared yet");
  const Change unknown = no_change(unset.reason(), margin);
  return {length,
          aggregate(reader, "n_eff", length, layers),
          aggregate(reader, "gate", length, layers),
          aggregate(reader, "observation_precision", length, layers),
          unset,
          unset,
          Maybe<Interval>::none(unset.reason()),
          unknown,
          unknown,
          unknown};
}

std::string margin_meaning(double margin) {
  return fmt::format("a change of {:g} in logit(gate) multiplies the odds of the gate by {:.2f}; smaller ones count as flat", margin,
                     std::exp(margin));
}

void put(OrderedJson& object, const std::string& name, const Maybe<Aggregate>& aggregate) {
  using analyses::put;
  if (!aggregate) return put(object, name, Measured::none(aggregate.reason()));
  object[name] = aggregate->mean;
  put(object, name + "_deviation", aggregate->deviation);
  put(object, name + "_interval", aggregate->interval);
  if (aggregate->left_out > 0) object[name + "_cells_left_out"] = aggregate->left_out;
}

void put(OrderedJson& object, const std::string& name, const Change& change) {
  analyses::put(object, name, change.mean);
  if (change.mean) analyses::put(object, name + "_interval", change.interval);
  object[name + "_flat"] = to_json(change.flat);
}

Context context_of(const runfile::RunReader& reader, const std::vector<std::size_t>& layers, const Options& options) {
  check(options);
  const double margin = options.equivalence_margin;
  Context result{original_layers(reader, layers), reader.request().nested, {}, margin, margin_meaning(margin)};
  for (const Length& length : usable_lengths(reader)) result.points.push_back(read_point(reader, length, layers, margin));
  const ContextPoint shortest = result.points.front();
  for (ContextPoint& point : result.points) compare_with_shortest(point, shortest, margin);
  return result;
}

}  // namespace

Context context(const runfile::RunReader& reader, const Options& options) {
  return context_of(reader, deep_layers(reader, options), options);
}

std::vector<KindContext> context_by_attention(const runfile::RunReader& reader, const Options& options) {
  const std::vector<std::string>& attention = reader.request().attention;
  std::vector<std::string> kinds;
  for (const std::string& kind : attention) {
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
  }
  std::vector<KindContext> contexts;
  if (kinds.size() < 2) return contexts;
  for (const std::string& kind : kinds) {
    std::vector<std::size_t> layers;
    for (std::size_t layer = 0; layer < attention.size(); ++layer) {
      if (attention[layer] == kind) layers.push_back(layer);
    }
    contexts.push_back({kind, context_of(reader, layers, options)});
  }
  return contexts;
}

OrderedJson to_json(const Context& context) {
  OrderedJson json;
  json["deep_layers"] = context.deep_layers;
  json["window"] = "last-quarter queries";
  json["interval_level"] = confidence;
  json["pairing"] =
      context.nested ? "chunks of equal number share their text (nested)" : "by chunk number; the texts differ between lengths";
  json["equivalence_margin"] = context.equivalence_margin;
  json["equivalence_margin_meaning"] = context.margin_meaning;
  json["points"] = OrderedJson::array();
  for (const ContextPoint& point : context.points) {
    OrderedJson entry;
    entry["tokens"] = point.length.tokens;
    entry["chunks"] = point.length.samples.size();
    put(entry, "n_eff", point.n_eff);
    put(entry, "gate", point.gate);
    put(entry, "observation_precision", point.observation_precision);
    put(entry, "observation_precision_ratio", point.precision_ratio);
    put(entry, "observation_precision_ratio_deviation", point.precision_ratio_deviation);
    put(entry, "observation_precision_ratio_interval", point.precision_ratio_interval);
    put(entry, "logit_gate_change", point.logit_gate);
    put(entry, "log_observation_precision_change", point.log_precision);
    put(entry, "logit_gate_less_log_precision_change", point.difference);
    json["points"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace gainlens::analyses
