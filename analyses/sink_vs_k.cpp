#include "analyses/sink_vs_k.h"

#include "analyses/cells.h"
#include "analyses/published_sinks.h"
#include "analyses/sink_keys.h"
#include "core/counted.h"
#include "core/quantity.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

namespace gainlens::analyses {
namespace {

constexpr std::string_view bos_mass_name = "BOS mass", total_mass_name = "total sink mass";
constexpr std::size_t measured_gain = 0;  // kalman_gain among the variants
constexpr double no_value = std::numeric_limits<double>::quiet_NaN();

/// [layer position] why the layer is set apart; empty if it is not.
std::vector<std::string> reasons_apart(const runfile::RunReader& reader, const std::vector<Length>& lengths) {
  std::vector<std::string> reasons;
  for (const std::string& attention : reader.attention()) {
    std::vector<Length> hidden;
    for (const Length& length : lengths) {
      if (first_key_visibility(attention, length.tokens) == FirstKey::hidden) hidden.push_back(length);
    }
    reasons.push_back(
        hidden.empty()
            ? ""
            : fmt::format("key 0 is outside the window of every second-half query at {}, so the BOS mass is 0 there",
                          list_lengths(hidden)));
  }
  return reasons;
}

/// BOS mass, total sink mass and the gains.
struct SinkCells {
  Maybe<Cells> bos_mass;
  Maybe<Cells> total_mass;
  bool first_keys_only = false;
  std::vector<Maybe<Cells>> gains;  // [variant]
};

SinkCells read_sink_cells(const runfile::RunReader& reader, const std::vector<Length>& lengths) {
  SinkCells cells{.bos_mass = Cells::read(reader, "summary/bos_mass"),
                  .total_mass = Maybe<Cells>::none("the run has no /sinks"),
                  .first_keys_only = false,
                  .gains = {}};
  if (reader.request().statistics) {
    std::vector<std::int64_t> tokens;
    tokens.reserve(lengths.size());
    for (const Length& length : lengths) tokens.push_back(length.tokens);
    SinkKeys sinks = sink_keys(reader, column_mean_threshold, tokens);
    cells.total_mass = std::move(sinks.mass_of_sinks);
    cells.first_keys_only = sinks.first_keys_only;
  }
  for (const GainVariant& variant : gain_variants)
    cells.gains.push_back(Cells::read(reader, fmt::format("summary/{}", variant.name)));
  return cells;
}

/// One of the two masses that are compared with gains.
struct Mass {
  PairNames names;
  double SinkPoint::*member;
  const Maybe<Cells>& cells;
  bool sets_apart;  ///< whether layers that are set apart are left out of what is pooled
};

std::vector<SinkPoint> read_points(const runfile::RunReader& reader, const SinkCells& cells,
                                   const std::vector<Length>& lengths, std::size_t& values_left_out) {
  const std::vector<std::string> apart = reasons_apart(reader, lengths);
  std::vector<SinkPoint> points;
  for (const std::size_t layer : all_layers(reader)) {
    for (std::int64_t head = 0; head < reader.heads(); ++head) {
      SinkPoint point{
          layer, reader.layers()[layer], head, reader.attention()[layer], !apart[layer].empty(), no_value, no_value,
          {}};
      const auto read = [&](const Maybe<Cells>& values) {
        return values ? mean_over_lengths(*values, lengths, layer, static_cast<std::size_t>(head), 0, values_left_out)
                      : no_value;
      };
      point.bos_mass = read(cells.bos_mass);
      // A layer in which no key can be a sink has no total by definition: nothing is left out.
      std::size_t by_definition = 0;
      if (cells.total_mass) {
        point.total_mass =
            mean_over_lengths(*cells.total_mass, lengths, layer, static_cast<std::size_t>(head), 0, by_definition);
      }
      for (std::size_t v = 0; v < cells.gains.size(); ++v) point.gain[v] = read(cells.gains[v]);
      points.push_back(std::move(point));
    }
  }
  return points;
}

/// The pooled points, with their values chunk by chunk.
ChunkedPairs chunked(const runfile::RunReader& reader, const SinkCells& cells, const std::vector<Length>& lengths,
                     const std::vector<const SinkPoint*>& points, const Mass& mass, std::size_t variant) {
  ChunkedPairs pairs{{}, text_stretches(reader.request(), lengths), {}, {}};
  pairs.heads.group_size = static_cast<std::size_t>(reader.heads() / reader.kv_heads());
  for (const std::size_t layer : all_layers(reader))
    pairs.heads.layer_group_size.push_back(static_cast<std::size_t>(reader.heads() / reader.kv_heads(layer)));
  pairs.heads.names = mass.names;
  for (const SinkPoint* point : points) {
    pairs.heads.x.push_back(point->*mass.member);
    pairs.heads.y.push_back(point->gain[variant]);
    pairs.heads.layer.push_back(point->layer_position);
    pairs.heads.head.push_back(static_cast<std::size_t>(point->head));
  }
  if (points.empty()) return pairs;
  for (const Length& length : lengths) {
    auto &x = pairs.x.emplace_back(), &y = pairs.y.emplace_back();
    for (const std::int64_t sample : length.samples) {
      x.emplace_back();
      y.emplace_back();
      for (const SinkPoint* point : points) {
        const auto head = static_cast<std::size_t>(point->head);
        x.back().push_back(mass.cells->at(length.index, sample, point->layer_position, head));
        y.back().push_back(cells.gains[variant]->at(length.index, sample, point->layer_position, head));
      }
    }
  }
  return pairs;
}

/// The coordinates of a set of points, ready to correlate.
struct Coordinates {
  std::vector<double> mass, gain;
  std::vector<std::size_t> layer;

  void add(const SinkPoint& point, const Mass& of, std::size_t variant) {
    mass.push_back(point.*of.member);
    gain.push_back(point.gain[variant]);
    layer.push_back(point.layer_position);
  }
};

Maybe<SinkCorrelation> correlate(const runfile::RunReader& reader, const SinkCells& cells,
                                 const std::vector<Length>& lengths, const std::vector<SinkPoint>& points,
                                 const Mass& mass, std::size_t variant, const Resampling& resampling) {
  Coordinates pooled;
  std::vector<const SinkPoint*> pooled_points;
  std::map<std::string, Coordinates> by_kind;
  std::map<std::size_t, std::pair<std::int64_t, Coordinates>> by_layer;
  std::size_t left_out = 0;
  for (const SinkPoint& point : points) {
    if (!std::isfinite(point.*mass.member) || !std::isfinite(point.gain[variant])) {
      ++left_out;
      continue;
    }
    by_kind[point.attention].add(point, mass, variant);
    if (mass.sets_apart && point.set_apart) continue;
    pooled.add(point, mass, variant);
    pooled_points.push_back(&point);
    by_layer[point.layer_position].first = point.layer;
    by_layer[point.layer_position].second.add(point, mass, variant);
  }
  if (left_out == points.size()) {
    return Maybe<SinkCorrelation>::none(fmt::format("the run has no head with both {} and {}",
                                                    mass.names.x == bos_mass_name ? "bos_mass" : mass.names.x,
                                                    gain_variants[variant].name));
  }
  SinkCorrelation result{
      correlation(pooled.mass, pooled.gain, mass.names),
      {},
      correlation_within(pooled.mass, pooled.gain, pooled.layer, mass.names),
      {},
      left_out,
      sink_inference(chunked(reader, cells, lengths, pooled_points, mass, variant), reader.attention(), resampling)};
  for (const auto& [kind, c] : by_kind)
    result.within_attention_type.emplace(kind, correlation(c.mass, c.gain, mass.names));
  for (const auto& [position, layer] : by_layer) {
    result.by_layer.emplace_back(layer.first, correlation(layer.second.mass, layer.second.gain, mass.names));
  }
  return result;
}

SinkHeads heads_above(const std::vector<SinkPoint>& points, double threshold) {
  std::set<std::int64_t> layers;
  std::vector<double> gains;
  std::size_t heads = 0;
  for (const SinkPoint& point : points) {
    if (point.set_apart || !(point.bos_mass > threshold)) continue;
    ++heads;
    layers.insert(point.layer);
    if (std::isfinite(point.gain[measured_gain])) gains.push_back(point.gain[measured_gain]);
  }
  const Measured smallest =
      gains.empty() ? Measured::none(heads == 0 ? "no head is above the threshold" : "these heads have no K")
                    : Measured(*std::min_element(gains.begin(), gains.end()));
  return {threshold, heads, {layers.begin(), layers.end()}, smallest};
}

void describe_late_layers(SinkVsK& result) {
  std::vector<double> gains, masses;
  for (const SinkPoint& point : result.points) {
    if (std::find(result.late_layers.begin(), result.late_layers.end(), point.layer) == result.late_layers.end())
      continue;
    if (std::isfinite(point.gain[measured_gain])) gains.push_back(point.gain[measured_gain]);
    if (!point.set_apart && std::isfinite(point.bos_mass)) masses.push_back(point.bos_mass);
  }
  if (!gains.empty()) {
    const auto [low, high] = std::minmax_element(gains.begin(), gains.end());
    result.late_gain = Interval{*low, *high};
  }
  if (!masses.empty()) result.late_bos_mass = *std::max_element(masses.begin(), masses.end());
}

/// @param on_key_0  set to what is counted for key 0
std::vector<Measured> sink_share(const runfile::RunReader& reader, const std::vector<Length>& lengths,
                                 SinkCount* on_key_0 = nullptr) {
  const auto column_mean = Cells::read(reader, "summary/column_mean");
  if (!column_mean) return std::vector<Measured>(runfile::first_keys, Measured::none(column_mean.reason()));
  std::vector<Measured> shares;
  for (std::size_t key = 0; key < column_mean->last(); ++key) {
    SinkCount count;
    std::size_t layers_counted = 0;
    for (const Length& length : lengths) {
      const std::vector<std::size_t> layers = layers_that_see_key_0(reader, length.tokens);
      layers_counted += layers.size();
      for (const std::int64_t sample : length.samples) count.add(*column_mean, length.index, sample, layers, key);
    }
    if (key == 0 && on_key_0 != nullptr) *on_key_0 = count;
    const std::string_view nothing =
        layers_counted == 0 ? "key 0 is outside the window of every layer" : "no chunk has a value for this key";
    shares.push_back(count.cells == 0 ? Measured::none(std::string(nothing)) : Measured(count.share()));
  }
  return shares;
}

void add_notes(SinkVsK& result, const runfile::RunReader& reader, std::size_t values_left_out) {
  std::set<std::string> partly;
  for (const std::string& attention : reader.attention()) {
    for (const Length& length : result.lengths) {
      if (first_key_visibility(attention, length.tokens) == FirstKey::partly_hidden) {
        partly.insert(fmt::format("{} at {}", attention, format_count(length.tokens)));
      }
    }
  }
  for (const std::string& where : partly) {
    result.notes.push_back(fmt::format(
        "with attention {}, only some of the second-half queries see key 0, which lowers the BOS mass of these layers",
        where));
  }
  for (const Length& length : result.lengths) {
    if (length.missing > 0) {
      result.notes.push_back(fmt::format("chunks missing at {} tokens: {} of {}", format_count(length.tokens),
                                         length.missing, reader.samples()));
    }
  }
  if (values_left_out > 0)
    result.notes.push_back(
        fmt::format("left out because not finite: {} of complete chunks", counted(values_left_out, "value")));
}

OrderedJson to_json(const Correlation& c) {
  OrderedJson json;
  json["points"] = c.points;
  put(json, "pearson", c.pearson);
  put(json, "pearson_naive_p", c.pearson_naive_p);
  put(json, "spearman", c.spearman);
  put(json, "spearman_naive_p", c.spearman_naive_p);
  return json;
}

OrderedJson correlations_to_json(const std::array<Maybe<SinkCorrelation>, gain_variants.size()>& correlations) {
  OrderedJson json = OrderedJson::object();
  for (std::size_t v = 0; v < gain_variants.size(); ++v) put(json, gain_variants[v].name, correlations[v]);
  return json;
}

OrderedJson shares_to_json(const std::vector<Measured>& shares) {
  OrderedJson json = OrderedJson::object();
  for (std::size_t key = 0; key < shares.size(); ++key) put(json, fmt::format("key_{}", key), shares[key]);
  return json;
}

OrderedJson sinks_to_json(const std::vector<SinkHeads>& sinks) {
  OrderedJson json = OrderedJson::array();
  for (const SinkHeads& sink : sinks) {
    OrderedJson entry;
    entry["above_bos_mass"] = sink.threshold;
    entry["heads"] = sink.heads;
    entry["layers"] = sink.layers;
    put(entry, "smallest_kalman_gain", sink.smallest_gain);
    json.push_back(std::move(entry));
  }
  return json;
}

OrderedJson apart_to_json(const std::vector<LayerApart>& layers) {
  OrderedJson json = OrderedJson::array();
  for (const LayerApart& layer : layers)
    json.push_back({{"layer", layer.layer}, {"attention", layer.attention}, {"reason", layer.reason}});
  return json;
}

}  // namespace

OrderedJson to_json(const SinkCorrelation& c) {
  OrderedJson json;
  json["pooled"] = to_json(c.pooled);
  json["within_attention_type"] = OrderedJson::object();
  for (const auto& [kind, value] : c.within_attention_type) json["within_attention_type"][kind] = to_json(value);
  json["within_layers"] = to_json(c.within_layers);
  json["by_layer"] = OrderedJson::array();
  for (const auto& [layer, value] : c.by_layer) {
    OrderedJson entry = to_json(value);
    entry["layer"] = layer;
    json["by_layer"].push_back(std::move(entry));
  }
  json["heads_left_out"] = c.left_out;
  json["inference"] = to_json(c.inference);
  return json;
}

SinkVsK sink_vs_k(const runfile::RunReader& reader, const Options& options) {
  const std::vector<Length> lengths = sink_lengths(reader, options);
  std::size_t values_left_out = 0;
  check(options);
  const SinkCells cells = read_sink_cells(reader, lengths);
  std::vector<SinkPoint> points = read_points(reader, cells, lengths, values_left_out);
  const Mass bos{{bos_mass_name, "K"}, &SinkPoint::bos_mass, cells.bos_mass, /*sets_apart=*/true};
  const Mass total{{total_mass_name, "K"}, &SinkPoint::total_mass, cells.total_mass, /*sets_apart=*/false};
  const auto with_every_gain = [&](const Mass& mass) {
    return [&]<std::size_t... variant>(std::index_sequence<variant...>) {
      return std::array{correlate(reader, cells, lengths, points, mass, variant, options.resampling)...};
    }
    (std::make_index_sequence<gain_variants.size()>());
  };
  std::vector<double> totals;
  for (const SinkPoint& point : points) {
    if (std::isfinite(point.total_mass)) totals.push_back(point.total_mass);
  }
  std::vector<double> masses;
  for (const SinkPoint& point : points) {
    if (!point.set_apart && std::isfinite(point.bos_mass)) masses.push_back(point.bos_mass);
  }
  SinkVsK result{
      .lengths = lengths,
      .lengths_rule = sink_lengths_rule(reader, options),
      .bos_policy = reader.request().bos_policy,
      .bos = reader.request().bos.has_value(),
      .head_dim = reader.request().head_dim,
      .points = {},
      .bos_mass = masses.empty() ? Measured::none("no head outside the excluded layers has a BOS mass")
                                 : Measured(mean(masses)),
      .correlations = with_every_gain(bos),
      .total_correlations = with_every_gain(total),
      .first_keys_only = cells.first_keys_only,
      .total_mass =
          totals.empty() ? Measured::none("no key is seen by enough queries to be a sink") : Measured(mean(totals)),
      .sinks = {},
      .late_layers = original_layers(reader, deep_layers(reader, options)),
      .late_gain = Maybe<Interval>::none("the late layers have no K"),
      .late_bos_mass = Measured::none("the late layers have no BOS mass, or all of them are excluded"),
      .apart = {},
      .notes = {},
      .sink_share = {},
      .sinks_on_key_0 = {},
      .sink_share_by_length = {},
  };
  result.sink_share = sink_share(reader, lengths, &result.sinks_on_key_0);
  for (const Length& length : lengths) result.sink_share_by_length.push_back(sink_share(reader, {length}));
  result.points = std::move(points);
  for (const double threshold : sink_thresholds) result.sinks.push_back(heads_above(result.points, threshold));
  describe_late_layers(result);
  const std::vector<std::string> reasons = reasons_apart(reader, lengths);
  for (const std::size_t layer : all_layers(reader)) {
    if (!reasons[layer].empty())
      result.apart.push_back({reader.layers()[layer], reader.attention()[layer], reasons[layer]});
  }
  add_notes(result, reader, values_left_out);
  return result;
}

std::string no_sink(const SinkVsK& sinks) {
  const SinkHeads& above = sinks.sinks.front();
  double most = -1;
  std::size_t heads = 0;
  for (const SinkPoint& point : sinks.points) {
    if (point.set_apart || !std::isfinite(point.bos_mass)) continue;
    most = std::max(most, point.bos_mass);
    ++heads;
  }
  if (above.heads > 0 || heads == 0) return {};
  return fmt::format("no head is a sink: none of {} heads has a BOS mass above {:g}, the largest is {:.3g}", heads,
                     above.threshold, most);
}

OrderedJson to_json(const SinkVsK& result) {
  OrderedJson json;
  json["lengths"] = tokens_of(result.lengths);
  json["lengths_rule"] = result.lengths_rule;
  json["bos_policy"] = result.bos_policy;
  json["key_0_is_bos"] = result.bos;
  json["heads"] = result.points.size();
  json["naive_p"] = "two-sided Student t that treats heads as independent, which they are not";
  put(json, "mean_bos_mass", result.bos_mass);
  put(json, "mean_total_sink_mass", result.total_mass);
  json["total_sink_mass_of_first_keys_only"] = result.first_keys_only;
  json["correlations"] = correlations_to_json(result.correlations);
  json["correlations_with_total_sink_mass"] = correlations_to_json(result.total_correlations);
  json["sinks"] = sinks_to_json(result.sinks);
  if (const std::string without = no_sink(result); !without.empty()) json["no_sink"] = without;
  json["late_layers"] = {{"layers", result.late_layers}};
  put(json["late_layers"], "kalman_gain_range", result.late_gain);
  put(json["late_layers"], "largest_bos_mass", result.late_bos_mass);
  json["set_apart"] = apart_to_json(result.apart);
  json["sink_share"] = shares_to_json(result.sink_share);
  json["sinks_on_key_0"] = {{"sinks", result.sinks_on_key_0.sinks}, {"head_chunk_pairs", result.sinks_on_key_0.cells}};
  json["sink_share_by_length"] = OrderedJson::array();
  for (std::size_t i = 0; i < result.lengths.size(); ++i) {
    OrderedJson entry = {{"tokens", result.lengths[i].tokens}};
    entry["sink_share"] = shares_to_json(result.sink_share_by_length[i]);
    json["sink_share_by_length"].push_back(std::move(entry));
  }
  json["notes"] = result.notes;
  return json;
}

}  // namespace gainlens::analyses
