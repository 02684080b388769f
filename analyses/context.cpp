#include "analyses/context.h"

#include "analyses/statistics.h"
#include "core/check.h"
#include "core/quantity.h"
#include "runfile/first_key.h"
#include "runfile/query_windows.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <utility>

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

/// lambda_obs at one length divided by that at another.
Maybe<TextRatio> precision_ratio(const ContextPoint& point, const ContextPoint& shortest,
                                 const runfile::Request& request, const std::string& missing) {
  const Maybe<Aggregate>&here = point.observation_precision, &there = shortest.observation_precision;
  if (!here || !there) return Maybe<TextRatio>::none(missing);
  const auto same = [](double value) { return value; };
  return ratio_of_means(request, point.length, transformed(here, same), shortest.length, transformed(there, same));
}

void compare_ratio(ContextPoint& point, const ContextPoint& shortest, const runfile::Request& request,
                   const std::string& missing) {
  const auto refuse = [&](const std::string& reason) {
    point.precision_ratio = point.precision_ratio_deviation = Measured::none(reason);
    point.precision_ratio_interval = Maybe<Interval>::none(reason);
  };
  const Maybe<Aggregate>&here = point.observation_precision, &there = shortest.observation_precision;
  const auto found = precision_ratio(point, shortest, request, missing);
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
  return {.length = length,
          .extrapolated = false,
          .set_apart = {},
          .n_eff = aggregate(reader, "n_eff", length, layers),
          .gate = aggregate(reader, "gate", length, layers),
          .observation_precision = aggregate(reader, "observation_precision", length, layers),
          .precision_ratio = unset,
          .precision_ratio_deviation = unset,
          .precision_ratio_interval = Maybe<Interval>::none(unset.reason()),
          .logit_gate = unknown,
          .log_precision = unknown,
          .difference = unknown};
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

/// The windows of these layers that some chunk of a length fills: the longer ones never bind. Ascending.
std::set<std::int64_t> binding_windows(const runfile::RunReader& reader, const std::vector<std::size_t>& layers,
                                       std::int64_t longest) {
  std::set<std::int64_t> windows;
  for (const std::size_t layer : layers) {
    const auto window = runfile::attention_window(reader.attention().at(layer));
    if (window && *window < longest) windows.insert(*window);
  }
  return windows;
}

/// Why growth is not judged at a length; empty if it is.
std::string reason_apart(const ContextPoint& point, const std::set<std::int64_t>& windows, std::int64_t positions) {
  if (point.extrapolated) return fmt::format("beyond the model's {} positions", format_count(positions));
  const std::int64_t seen = runfile::last_quarter_begin(point.length.tokens) + 1;  // by the first query
  for (const std::int64_t window : windows) {
    if (seen < window) return fmt::format("the window of {} keys is not full", format_count(window));
  }
  return {};
}

Growth growth_of(const std::vector<ContextPoint>& points, const runfile::Request& request, double margin) {
  std::vector<std::size_t> judged;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (points[i].set_apart.empty()) judged.push_back(i);
  }
  Growth growth{0, 0, Measured::none("unset"), Maybe<Interval>::none("unset"), no_change("unset", margin)};
  if (judged.size() < 2) {
    const std::string reason =
        points.size() < 2
            ? "only one length has a complete chunk; a change needs a second one"
            : fmt::format("growth can be judged at {} of {} lengths, and takes two", judged.size(), points.size());
    growth.precision_ratio = Measured::none(reason);
    growth.precision_ratio_interval = Maybe<Interval>::none(reason);
    growth.log_precision = no_change(reason, margin);
    return growth;
  }
  growth.first = judged.front();
  growth.last = judged.back();
  const ContextPoint &first = points[growth.first], &last = points[growth.last];
  const std::string missing = no_change_reason(first.observation_precision, last.observation_precision);
  const auto log = [](double x) { return std::log(x); };
  growth.log_precision =
      Comparer(request, last.length, first.length, margin)
          .change(transformed(last.observation_precision, log), transformed(first.observation_precision, log), missing);
  const auto ratio = precision_ratio(last, first, request, missing);
  growth.precision_ratio = ratio ? Measured(ratio->ratio) : Measured::none(ratio.reason());
  growth.precision_ratio_interval = ratio ? ratio->interval : Maybe<Interval>::none(ratio.reason());
  return growth;
}

Context context_of(const runfile::RunReader& reader, const std::vector<std::size_t>& layers, const Options& options) {
  check(options);
  const double margin = options.equivalence_margin;
  const runfile::Request& request = reader.request();
  const std::vector<Length> lengths = usable_lengths(reader);
  std::vector<ContextPoint> points;
  points.reserve(lengths.size());
  for (const Length& length : lengths) points.push_back(read_point(reader, length, layers, margin));
  const std::set<std::int64_t> windows = binding_windows(reader, layers, lengths.back().tokens);
  const ContextPoint shortest = points.front();
  for (ContextPoint& point : points) {
    point.extrapolated = request.max_positions > 0 && point.length.tokens > request.max_positions;
    point.set_apart = reason_apart(point, windows, request.max_positions);
    compare_with_shortest(point, shortest, request, margin);
  }
  Growth growth = growth_of(points, request, margin);
  Context result{original_layers(reader, layers),
                 is_paired(request),
                 sharing_in_words(request, lengths),
                 std::move(points),
                 std::move(growth),
                 margin,
                 margin_meaning(margin)};
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

const KindContext& widest(const std::vector<KindContext>& kinds) {
  ASSERT(!kinds.empty(), "the widest of no kinds of attention");
  return *std::max_element(kinds.begin(), kinds.end(), [](const KindContext& a, const KindContext& b) {
    return runfile::attention_window(a.attention) < runfile::attention_window(b.attention);
  });
}

std::string set_apart_in_words(const Context& context) {
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;  // reason, lengths
  for (const ContextPoint& point : context.points) {
    if (point.set_apart.empty()) continue;
    if (reasons.empty() || reasons.back().first != point.set_apart)
      reasons.emplace_back(point.set_apart, std::vector<std::string>());
    reasons.back().second.push_back(format_count(point.length.tokens));
  }
  std::string text;
  for (const auto& [reason, lengths] : reasons)
    text += fmt::format("{}{} ({})", text.empty() ? "" : "; ", fmt::join(lengths, ", "), reason);
  return text;
}

std::string set_apart_in_words(const std::vector<KindContext>& kinds) {
  std::string text;
  for (const auto& [attention, context] : kinds) {
    const std::string apart = set_apart_in_words(context);
    if (!apart.empty()) text += fmt::format("{}{} layers: {}", text.empty() ? "" : "; ", attention, apart);
  }
  return text;
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
    if (!point.set_apart.empty()) entry["set_apart"] = point.set_apart;
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
  OrderedJson& growth = json["growth"] = OrderedJson::object();
  if (context.growth.judged()) {
    growth["from_tokens"] = context.points[context.growth.first].length.tokens;
    growth["to_tokens"] = context.points[context.growth.last].length.tokens;
  } else {
    const Measured none = Measured::none(context.growth.precision_ratio.reason());
    analyses::put(growth, "from_tokens", none);
    analyses::put(growth, "to_tokens", none);
  }
  analyses::put(growth, "observation_precision_ratio", context.growth.precision_ratio);
  analyses::put(growth, "observation_precision_ratio_interval", context.growth.precision_ratio_interval);
  put(growth, "log_observation_precision_change", context.growth.log_precision);
  return json;
}

}  // namespace gainlens::analyses
