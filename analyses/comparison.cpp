#include "analyses/comparison.h"

#include "analyses/cells.h"
#include "analyses/published_sinks.h"
#include "analyses/selection.h"
#include "analyses/sink_keys.h"
#include "analyses/statistics.h"
#include "core/check.h"
#include "core/number_ranges.h"
#include "core/quantity.h"
#include "runfile/schema.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>

namespace gainlens::analyses {
namespace {

using runfile::Request;
using runfile::RunReader;

/// Positions on the layer axis of a run of the layers that are compared.
struct LayerChoice {
  std::vector<std::size_t> all;
  std::vector<std::size_t> deep;
};

/// All layers of the run, or those that both runs measured. Deep layers are the last ones of these.
LayerChoice chosen_layers(const RunReader& reader, const Options& options, const std::vector<std::int64_t>& shared) {
  if (shared.empty()) return {all_layers(reader), deep_layers(reader, options)};
  std::vector<std::size_t> all = all_layers(reader);
  std::erase_if(all, [&](std::size_t layer) {
    return !std::binary_search(shared.begin(), shared.end(), reader.layers()[layer]);
  });
  const std::int64_t count = std::ssize(all), deep = options.deep_layers.value_or((count + 3) / 4);
  CHECK(deep >= 1 && deep <= count, "--deep-layers: {}; 1 to {} are allowed, the number of layers that both runs have",
        deep, count);
  return {all, {all.end() - deep, all.end()}};
}

using ByChunk = std::map<std::int64_t, double>;  // sample number -> value

struct ChunkValues {
  ByChunk values;
  std::string reason;  // if there are no values
};

ChunkValues from_aggregate(const Maybe<Aggregate>& aggregate) {
  if (!aggregate) return {{}, aggregate.reason()};
  ChunkValues chunks;
  for (std::size_t i = 0; i < aggregate->chunks.size(); ++i)
    chunks.values[aggregate->chunks[i]] = aggregate->chunk_means[i];
  return chunks;
}

const ComparedQuantity& quantity_named(std::string_view name) {
  const auto& all = compared_quantities();
  const auto found = std::find_if(all.begin(), all.end(), [&](const ComparedQuantity& q) { return q.name == name; });
  ASSERT(found != all.end(), "{} is not compared", name);
  return *found;
}

/// Share of (layer, head) of each chunk whose column mean at key 0 exceeds the threshold.
ChunkValues sink_share(const RunReader& reader, const Length& length, const std::vector<std::size_t>& layers) {
  const auto column_mean = Cells::read(reader, "summary/column_mean");
  if (!column_mean) return {{}, column_mean.reason()};
  ChunkValues chunks{{}, "no chunk has a value for key 0"};
  for (const std::int64_t sample : length.samples) {
    SinkCount count;
    count.add(*column_mean, length.index, sample, layers, 0);
    if (count.cells > 0) chunks.values[sample] = count.share();
  }
  return chunks;
}

ChunkValues nll(const RunReader& reader, const Length& length) {
  if (!reader.has("summary/nll")) return {{}, "the run has no summary/nll"};
  const runfile::Array array = reader.read("summary/nll");
  ChunkValues chunks{{}, "no chunk of this length has a value"};
  for (const std::int64_t sample : length.samples) {
    const double value =
        array.values.at(length.index * static_cast<std::size_t>(reader.samples()) + static_cast<std::size_t>(sample));
    if (std::isfinite(value)) chunks.values[sample] = value;
  }
  return chunks;
}

/// One of the two runs.
struct Side {
  const RunReader& reader;
  LayerChoice chosen;
  std::vector<Maybe<Cells>> head_cells;  // compared_head_quantities
  bool full_lists = false;               // of the keys of some head: its sink mass is too small
};

Side side_of(const RunReader& reader, LayerChoice chosen) {
  Side side{reader, std::move(chosen), {}};
  for (const std::string_view name : compared_head_quantities) {
    if (name != "sink_mass") {
      side.head_cells.push_back(Cells::read(reader, fmt::format("summary/{}", name)));
    } else if (!reader.request().statistics) {
      side.head_cells.push_back(Maybe<Cells>::none("the run has no statistics"));
    } else {
      SinkKeys sinks = sink_keys(reader);
      side.full_lists = sinks.full_heads > 0;
      side.head_cells.push_back(std::move(sinks.mass));
    }
  }
  return side;
}

/// Mean over heads of the sink mass.
ChunkValues sink_mass(const Side& side, const Length& length) {
  const auto place = std::ranges::find(compared_head_quantities, "sink_mass") - compared_head_quantities.begin();
  const Maybe<Cells>& mass = side.head_cells[static_cast<std::size_t>(place)];
  if (!mass) return {{}, mass.reason()};
  ChunkValues chunks{{}, "no key can be a sink at this length"};
  for (const std::int64_t sample : length.samples) {
    std::vector<double> values;
    for (const std::size_t layer : side.chosen.all) {
      for (std::size_t head = 0; head < mass->heads(); ++head) {
        const double value = mass->at(length.index, sample, layer, head);
        if (std::isfinite(value)) values.push_back(value);
      }
    }
    if (!values.empty()) chunks.values[sample] = mean(values);
  }
  return chunks;
}

/// The values of one head.
ChunkValues head_values(const Maybe<Cells>& cells, const Length& length, std::size_t layer, std::size_t head) {
  if (!cells) return {{}, cells.reason()};
  ChunkValues chunks{{}, "no chunk has a value of this head"};
  for (const std::int64_t sample : length.samples) {
    const double value = cells->at(length.index, sample, layer, head);
    if (std::isfinite(value)) chunks.values[sample] = value;
  }
  return chunks;
}

ChunkValues chunk_values(const Side& side, const ComparedQuantity& quantity, const Length& length) {
  const RunReader& reader = side.reader;
  const LayerChoice& chosen = side.chosen;
  if (quantity.name == "sink_mass") return sink_mass(side, length);
  if (quantity.name == "nll") return nll(reader, length);
  if (quantity.name == "sink_share" || quantity.name == "bos_mass") {
    std::vector<std::size_t> layers = layers_that_see_key_0(reader, length.tokens);
    std::erase_if(layers,
                  [&](std::size_t layer) { return !std::binary_search(chosen.all.begin(), chosen.all.end(), layer); });
    if (layers.empty()) return {{}, "key 0 is outside the window of every layer"};
    return quantity.name == "sink_share" ? sink_share(reader, length, layers)
                                         : from_aggregate(aggregate(reader, "bos_mass", length, layers));
  }
  return from_aggregate(aggregate(reader, quantity.name, length, chosen.deep));
}

Measured mean_of(const ChunkValues& chunks) {
  if (chunks.values.empty()) return Measured::none(chunks.reason);
  std::vector<double> values;
  for (const auto& [sample, value] : chunks.values) values.push_back(value);
  return mean(values);
}

PairedDifference side_by_side(const ComparedQuantity& quantity, const ChunkValues& first, const ChunkValues& second,
                              const std::string& reason) {
  return {quantity, mean_of(first), mean_of(second), Measured::none(reason), Maybe<Interval>::none(reason), 0};
}

PairedDifference paired(const ComparedQuantity& quantity, const ChunkValues& first, const ChunkValues& second) {
  ChunkValues common_first, common_second;
  std::vector<double> differences;
  double scale = 0;
  for (const auto& [sample, value] : first.values) {
    const auto other = second.values.find(sample);
    if (other == second.values.end()) continue;
    common_first.values[sample] = value;
    common_second.values[sample] = other->second;
    differences.push_back(other->second - value);
    scale = std::max(scale, std::abs(value) + std::abs(other->second));
  }
  if (differences.empty()) {
    const std::string missing =
        first.values.empty() ? "in the first run: " + first.reason : "in the second run: " + second.reason;
    return side_by_side(quantity, first, second,
                        first.values.empty() || second.values.empty() ? missing : "no chunk has a value in both runs");
  }
  // A spread at rounding would make an interval of no width.
  const Maybe<Interval> interval = differences.size() > 1 && alike(differences, scale)
                                       ? Maybe<Interval>::none(same_in_every_chunk)
                                       : mean_interval(differences);
  return {quantity, mean_of(common_first), mean_of(common_second), mean(differences), interval, differences.size()};
}

/// Why heads of two runs are not compared one by one; empty if they are.
std::string why_no_heads(const Request& first, const Request& second, bool only_shared) {
  if (!first.statistics || !second.statistics) return "one run has no numbers of attention";
  if (first.heads != second.heads)
    return fmt::format("the models have {} and {} heads a layer", first.heads, second.heads);
  if (!only_shared && first.layers != second.layers) return "the models have other layers";
  return {};
}

void add_heads(Comparison& result, const Side& first, const Side& second, const Length& length, const Length& other) {
  for (const std::size_t layer : first.chosen.all) {
    const std::int64_t number = first.reader.layers()[layer];
    const auto& numbers = second.reader.layers();
    const auto found = std::find(numbers.begin(), numbers.end(), number);
    ASSERT(found != numbers.end(), "layer {} is not in both runs", number);
    const auto matching = static_cast<std::size_t>(found - numbers.begin());
    for (std::size_t head = 0; std::cmp_less(head, first.reader.heads()); ++head) {
      const auto compared = [&](const ComparedQuantity& quantity, const Maybe<Cells>& a, const Maybe<Cells>& b) {
        const ChunkValues x = head_values(a, length, layer, head), y = head_values(b, other, matching, head);
        return result.unpaired.empty() ? paired(quantity, x, y) : side_by_side(quantity, x, y, result.unpaired);
      };
      HeadDifference& one = result.heads.emplace_back();
      one.tokens = length.tokens;
      one.layer = number;
      one.head = static_cast<std::int64_t>(head);
      for (std::size_t i = 0; i < compared_head_quantities.size(); ++i) {
        one.quantities.push_back(
            compared(quantity_named(compared_head_quantities[i]), first.head_cells[i], second.head_cells[i]));
      }
    }
  }
}

std::vector<std::string> comparison_caveats(const Request& first, const Request& second, const Comparison& comparison) {
  std::vector<std::string> caveats;
  if (first.model != second.model) {
    caveats.emplace_back(
        "Each model is one training run: intervals over chunks are about other text of this kind, not about the same "
        "training with another seed.");
    caveats.emplace_back(
        "K and lambda_obs depend on the scale of each model's values, which is arbitrary: between models, compare "
        "scaled K, n_eff, entropy, BOS mass and NLL.");
    caveats.emplace_back(
        "Heads of separately trained models have no common order: only chunk means are paired, not cells.");
  }
  for (const RunDifference& difference : comparison.differences) {
    if (!difference.consequence.empty())
      caveats.push_back(fmt::format("Different {}: {}", difference.what, difference.consequence));
  }
  return caveats;
}

/// Why no numbers of two runs are compared; empty if they are.
std::string why_refused(const Request& first, const Request& second, bool no_layer_in_common) {
  if (first.version != second.version) {
    return fmt::format(
        "the runs have statistics versions {} and {}, and their numbers may mean different things; sweep both with the "
        "same gainlens",
        first.version, second.version);
  }
  if (!no_layer_in_common) return {};
  return fmt::format(
      "no layer was measured in both runs ({} in the first, {} in the second); sweep with other --layers",
      number_ranges(first.layers), number_ranges(second.layers));
}

std::vector<std::int64_t> tokens_without(const std::vector<Length>& lengths, const std::vector<Length>& others) {
  std::vector<std::int64_t> tokens;
  for (const Length& length : lengths) {
    if (std::none_of(others.begin(), others.end(), [&](const Length& other) { return other.tokens == length.tokens; }))
      tokens.push_back(length.tokens);
  }
  return tokens;
}

}  // namespace

const std::vector<ComparedQuantity>& compared_quantities() {
  static constexpr std::string_view deep = "deep layers, last-quarter queries";
  static constexpr std::string_view all = "layers that see key 0, second-half queries";
  static const std::vector<ComparedQuantity> quantities = [] {
    std::vector<ComparedQuantity> list;
    for (const char* name :
         {"n_eff", "entropy", "observation_precision", "kalman_gain", "kalman_gain_scaled", "gate", "bos_mass"}) {
      const runfile::HeadQuantity& stored = runfile::head_quantity(name);
      list.push_back(
          {stored.name, stored.label, stored.unit, stored.window == runfile::Window::last_quarter ? deep : all});
    }
    list.push_back({"sink_share", "sink share", "1", "layers that see key 0, column mean above 0.3"});
    list.push_back(
        {"sink_mass", "sink mass", "1",
         "all layers, keys with a column mean of at least 1/sqrt(n), or 0.1 from n = 100 on, second-half queries"});
    list.push_back({"nll", "NLL", "nats per token", "every predicted token"});
    return list;
  }();
  return quantities;
}

void check_different(const RunReader& first, const RunReader& second) {
  CHECK(first.request().to_json() != second.request().to_json(),
        "{} and {}: hold the same request, and so the same numbers; give two different runs",
        printable(first.path().string()), printable(second.path().string()));
}

Comparison compare(const RunReader& first, const RunReader& second, const Options& options) {
  const Request &a = first.request(), &b = second.request();
  check_different(first, second);
  Comparison result{.differences = request_differences(a, b)};
  const bool only_shared = compares_shared_layers(a, b);
  if (only_shared) {
    std::set_intersection(a.layers.begin(), a.layers.end(), b.layers.begin(), b.layers.end(),
                          std::back_inserter(result.shared_layers));
  }
  result.refused = why_refused(a, b, only_shared && result.shared_layers.empty());
  if (!result.refused.empty()) {
    result.caveats.push_back(fmt::format("No numbers are compared: {}.", result.refused));
    return result;
  }
  for (const RunDifference& difference : result.differences) {
    if (difference.unpairs && result.unpaired.empty())
      result.unpaired = fmt::format("chunks are not paired: {}", difference.consequence);
  }
  const Side one = side_of(first, chosen_layers(first, options, result.shared_layers)),
             two = side_of(second, chosen_layers(second, options, result.shared_layers));
  result.no_heads = why_no_heads(a, b, only_shared);
  const std::vector<Length> lengths = usable_lengths(first), others = usable_lengths(second);
  for (const Length& length : lengths) {
    const auto other =
        std::find_if(others.begin(), others.end(), [&](const Length& l) { return l.tokens == length.tokens; });
    if (other == others.end()) continue;
    ComparedLength entry{length.tokens, {}};
    for (const ComparedQuantity& quantity : compared_quantities()) {
      const ChunkValues x = chunk_values(one, quantity, length), y = chunk_values(two, quantity, *other);
      entry.quantities.push_back(result.unpaired.empty() ? paired(quantity, x, y)
                                                         : side_by_side(quantity, x, y, result.unpaired));
    }
    result.lengths.push_back(std::move(entry));
    if (result.no_heads.empty()) add_heads(result, one, two, length, *other);
  }
  result.only_first = tokens_without(lengths, others);
  result.only_second = tokens_without(others, lengths);
  result.caveats = comparison_caveats(a, b, result);
  if (one.full_lists || two.full_lists) {
    result.caveats.push_back(fmt::format(
        "Sink mass is too small where a run's list of {} keys of a head is full, which happens in long texts with many "
        "sinks: compare it at shorter lengths.",
        runfile::stored_sinks));
  }
  return result;
}

OrderedJson to_json(const PairedDifference& compared) {
  OrderedJson values;
  put(values, "first", compared.first);
  put(values, "second", compared.second);
  put(values, "difference", compared.difference);
  put(values, "interval", compared.interval);
  values["pairs"] = compared.pairs;
  return values;
}

OrderedJson to_json(const Comparison& comparison) {
  OrderedJson json;
  json["differences"] = OrderedJson::array();
  for (const RunDifference& difference : comparison.differences) {
    json["differences"].push_back({{"what", difference.what},
                                   {"first", difference.first},
                                   {"second", difference.second},
                                   {"consequence", difference.consequence}});
  }
  if (!comparison.refused.empty()) {
    json["lengths"] = nullptr;
    json["lengths_reason"] = comparison.refused;
    json["caveats"] = comparison.caveats;
    return json;
  }
  if (!comparison.shared_layers.empty()) json["layers_compared"] = comparison.shared_layers;
  json["paired_by_chunk"] = comparison.unpaired.empty();
  if (!comparison.unpaired.empty()) json["paired_by_chunk_reason"] = comparison.unpaired;
  json["interval_level"] = confidence;
  json["lengths"] = OrderedJson::array();
  for (const ComparedLength& length : comparison.lengths) {
    OrderedJson entry;
    entry["tokens"] = length.tokens;
    for (const PairedDifference& quantity : length.quantities) {
      entry[std::string(quantity.quantity.name)] = to_json(quantity);
    }
    json["lengths"].push_back(std::move(entry));
  }
  json["heads"] = OrderedJson::array();
  for (const HeadDifference& head : comparison.heads) {
    OrderedJson row{{"tokens", head.tokens}, {"layer", head.layer}, {"head", head.head}};
    for (const PairedDifference& one : head.quantities) row[std::string(one.quantity.name)] = to_json(one);
    json["heads"].push_back(std::move(row));
  }
  if (!comparison.no_heads.empty()) json["heads_reason"] = comparison.no_heads;
  json["lengths_only_in_first"] = comparison.only_first;
  json["lengths_only_in_second"] = comparison.only_second;
  json["caveats"] = comparison.caveats;
  return json;
}

}  // namespace gainlens::analyses
