#include "analyses/context.h"

#include "analyses/statistics.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace gainlens::analyses {
namespace {

/// The transformed chunk means that are finite.
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
  return {Measured::none(reason), Maybe<Interval>::none(reason), "", no_equivalence(margin, 0, reason)};
}

/// Compares one length with the shortest.
class Comparer {
 public:
  Comparer(const runfile::Request& request, const Length& length, const Length& shortest, double margin)
      : request_(request), length_(length), shortest_(shortest), margin_(margin) {}

  bool same() const { return length_.index == shortest_.index; }
  Maybe<TextDifference> difference(const ByChunk& here, const ByChunk& there) const {
    return difference_of_means(request_, length_, here, shortest_, there);
  }
  Change change(const ByChunk& here, const ByChunk& there, const std::string& reason) const {
    if (here.empty() || there.empty()) return no_change(reason, margin_);
    if (same())
      return {0.0, Interval{0, 0}, "this is the shortest length",
              no_equivalence(margin_, 0, "this is the shortest length")};
    const auto found = difference(here, there);
    if (!found) return no_change(found.reason(), margin_);
    if (!found->estimate) {
      const std::string& why = found->estimate.reason();
      return {found->value, Maybe<Interval>::none(why), found->basis, no_equivalence(margin_, 1, why)};
    }
    const auto units = static_cast<std::size_t>(found->estimate->degrees_of_freedom) + 1;
    return {found->value, student_interval(*found->estimate), found->basis,
            test_equivalence(*found->estimate, units, margin_)};
  }

 private:
  const runfile::Request& request_;
  const Length &length_, &shortest_;
  double margin_;
};

/// Why the chunk means give no change.
std::string no_change_reason(const Maybe<Aggregate>& shortest, const Maybe<Aggregate>& here) {
  if (!here) return here.reason();
  if (!shortest) return shortest.reason();
  return "no chunk has a finite value here or at the shortest length";
}

void compare_ratio(ContextPoint& point, const ContextPoint& shortest, const runfile::Request& request,
                   const std::string& missing) {
  const auto refuse = [&](const std::string& reason) {
    point.precision_ratio = point.precision_ratio_deviation = Measured::none(reason);
    point.precision_ratio_interval = Maybe<Interval>::none(reason);
  };
  const Maybe<Aggregate>&here = point.observation_precision, &there = shortest.observation_precision;
  if (!here || !there) return refuse(missing);
  const auto same = [](double value) { return value; };
  const auto found =
      ratio_of_means(request, point.length, transformed(here, same), shortest.length, transformed(there, same));
  if (!found) return refuse(found.reason());
  point.precision_ratio = found->ratio;
  point.precision_ratio_deviation = here->deviation ? Measured(*here->deviation / there->mean) : here->deviation;
  point.precision_ratio_interval =
      point.length.index == shortest.length.index ? Maybe<Interval>(Interval{1, 1}) : found->interval;
}

void compare_with_shortest(ContextPoint& point, const ContextPoint& shortest, const runfile::Request& request,
                           double margin) {
  const auto logit = [](double g) { return std::log(g / (1 - g)); };
  const auto log = [](double x) { return std::log(x); };
  const ByChunk gate = transformed(point.gate, logit), first_gate = transformed(shortest.gate, logit);
  const ByChunk precision = transformed(point.observation_precision, log);
  const ByChunk first_precision = transformed(shortest.observation_precision, log);
  const std::string no_gate = no_change_reason(shortest.gate, point.gate);
  const std::string no_precision = no_change_reason(shortest.observation_precision, point.observation_precision);
  const Comparer comparer(request, point.length, shortest.length, margin);
  point.logit_gate = comparer.change(gate, first_gate, no_gate);
  point.log_precision = comparer.change(precision, first_precision, no_precision);
  point.difference = comparer.change(minus(gate, precision), minus(first_gate, first_precision),
                                     gate.empty() || first_gate.empty() ? no_gate : no_precision);
  compare_ratio(point, shortest, request, no_precision);
}

ContextPoint read_point(const runfile::RunReader& reader, const Length& length, const std::vector<std::size_t>& layers,
                        double margin) {
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
  return fmt::format(
      "a change of {:g} in logit(gate) multiplies the odds of the gate by {:.2f}; smaller changes count as flat",
      margin, std::exp(margin));
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
  if (change.mean) {
    analyses::put(object, name + "_interval", change.interval);
    object[name + "_basis"] = change.basis;
  }
  object[name + "_flat"] = to_json(change.flat);
}

Context context_of(const runfile::RunReader& reader, const std::vector<std::size_t>& layers, const Options& options) {
  check(options);
  const double margin = options.equivalence_margin;
  const runfile::Request& request = reader.request();
  const std::vector<Length> lengths = usable_lengths(reader);
  Context result{original_layers(reader, layers), is_paired(request), sharing_in_words(request, lengths), {}, margin,
                 margin_meaning(margin)};
  for (const Length& length : lengths) result.points.push_back(read_point(reader, length, layers, margin));
  const ContextPoint shortest = result.points.front();
  for (ContextPoint& point : result.points) compare_with_shortest(point, shortest, request, margin);
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
  json["shared_text"] = context.sharing;
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
