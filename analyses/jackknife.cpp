#include "analyses/jackknife.h"

#include "core/quantity.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

namespace gainlens::analyses {
namespace {

using Correlations = std::array<Measured, 2>;  // pooled, within layers

Correlations correlations(const std::vector<double>& x, const std::vector<double>& y,
                          const std::vector<std::size_t>& layer, const PairNames& names) {
  return {correlation(x, y, names).pearson, correlation_within(x, y, layer, names).pearson};
}

Correlations no_correlations(const std::string& reason) {
  return {Measured::none(reason), Measured::none(reason)};
}

/// Fisher's z of a correlation; missing at -1 and 1, where z is infinite.
Measured fisher(const Measured& r) {
  if (!r) return r;
  if (std::abs(*r) >= 1) return Measured::none("the heads lie on a straight line, so Fisher's z is infinite");
  return std::atanh(*r);
}

Maybe<Interval> interval_of(const Measured& whole, const std::vector<Correlations>& without, std::size_t which,
                            double degrees_of_freedom) {
  const Measured z = fisher(whole);
  if (!z) return Maybe<Interval>::none(z.reason());
  std::vector<double> values;
  for (const Correlations& correlations : without) {
    const Measured value = fisher(correlations[which]);
    if (!value) return Maybe<Interval>::none("with one unit left out: " + value.reason());
    values.push_back(*value);
  }
  const double bias = (static_cast<double>(values.size()) - 1) * (mean(values) - *z);
  const double squared_error = std::pow(jackknife_error(values), 2) + bias * bias / 4;
  const Interval ends = student_interval({*z - bias, std::sqrt(squared_error), degrees_of_freedom});
  return Interval{std::tanh(ends.low), std::tanh(ends.high)};
}

/// The range from the smallest to the largest of the correlations.
Maybe<Interval> range_of(const std::vector<Correlations>& without, std::size_t which) {
  std::vector<double> values;
  for (const Correlations& correlations : without) {
    if (!correlations[which]) return Maybe<Interval>::none("with one layer left out: " + correlations[which].reason());
    values.push_back(*correlations[which]);
  }
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return Interval{*low, *high};
}

Correlations without_layer(const ClusteredPairs& pairs, std::size_t left_out) {
  std::vector<double> x, y;
  std::vector<std::size_t> layer;
  for (std::size_t i = 0; i < pairs.x.size(); ++i) {
    if (pairs.layer[i] == left_out) continue;
    x.push_back(pairs.x[i]);
    y.push_back(pairs.y[i]);
    layer.push_back(pairs.layer[i]);
  }
  return correlations(x, y, layer, pairs.names);
}

/// Mean over lengths of each point's mean over the chunks outside one stretch of text; NaN if a length has no such
/// chunk with a value.
std::vector<double> means_without(const std::vector<std::vector<std::vector<double>>>& values,
                                  const TextStretches& text, std::size_t left_out, std::size_t points) {
  std::vector<double> means(points, 0.0);
  for (std::size_t length = 0; length < values.size(); ++length) {
    for (std::size_t point = 0; point < points; ++point) {
      double sum = 0;
      std::size_t count = 0;
      for (std::size_t chunk = 0; chunk < values[length].size(); ++chunk) {
        const double value = values[length][chunk][point];
        if (text.chunk_stretch[length][chunk] == left_out || !std::isfinite(value)) continue;
        sum += value;
        ++count;
      }
      means[point] += sum / static_cast<double>(count) / static_cast<double>(values.size());  // 0/0 gives the NaN
    }
  }
  return means;
}

bool all_finite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

/// Mean over layers of the variance of their heads.
double variance_within(const std::vector<double>& values, const std::vector<std::size_t>& layer) {
  std::map<std::size_t, std::vector<double>> members;
  for (std::size_t i = 0; i < values.size(); ++i) members[layer[i]].push_back(values[i]);
  double sum = 0;
  for (const auto& [number, inside] : members) sum += static_cast<double>(inside.size()) * population_variance(inside);
  return sum / static_cast<double>(values.size());
}

/// What the noise of the text adds to the variance over heads: the squared jackknife error of a head's value, averaged
/// over heads.
double noise_of(const std::vector<std::vector<double>>& without, std::size_t points) {
  double sum = 0;
  for (std::size_t point = 0; point < points; ++point) {
    std::vector<double> values;
    values.reserve(without.size());
    for (const auto& means : without) values.push_back(means[point]);
    sum += std::pow(jackknife_error(values), 2);
  }
  return sum / static_cast<double>(points);
}

Maybe<Interval> too_noisy(double share, std::string_view of) {
  return Maybe<Interval>::none(
      fmt::format("chunk noise is {:.0f}% of the variance of {}; intervals are given up to {:g}%", 100 * share, of,
                  100 * max_noise));
}

}  // namespace

Maybe<LayerRange> leave_out_layers(const ClusteredPairs& pairs) {
  const std::set<std::size_t> layers(pairs.layer.begin(), pairs.layer.end());
  if (layers.empty()) return Maybe<LayerRange>::none("no head has both values");
  if (layers.size() < min_layers) {
    return Maybe<LayerRange>::none(
        fmt::format("no range: it takes at least {} layers; the run has {}", min_layers, layers.size()));
  }
  std::vector<Correlations> without;
  without.reserve(layers.size());
  for (const std::size_t layer : layers) without.push_back(without_layer(pairs, layer));
  return LayerRange{layers.size(), range_of(without, 0), range_of(without, 1)};
}

Maybe<Jackknife> leave_out_text(const ChunkedPairs& pairs) {
  const std::size_t points = pairs.heads.x.size();
  if (points == 0) return Maybe<Jackknife>::none("no head has both values");
  if (pairs.text.fewest < min_stretches) {
    return Maybe<Jackknife>::none(
        fmt::format("no interval: it takes at least {} separate stretches of text, and the chunks of {} tokens lie in "
                    "{}; sweep with more --samples, or with --nested or --spread",
                    min_stretches, format_count(pairs.text.scarcest), pairs.text.fewest));
  }
  std::vector<std::vector<double>> x, y;
  std::vector<Correlations> without;
  bool whole = true;
  for (const std::size_t stretch : pairs.text.numbers) {
    x.push_back(means_without(pairs.x, pairs.text, stretch, points));
    y.push_back(means_without(pairs.y, pairs.text, stretch, points));
    const bool finite = all_finite(x.back()) && all_finite(y.back());
    without.push_back(finite ? correlations(x.back(), y.back(), pairs.heads.layer, pairs.heads.names)
                             : no_correlations("a head has no value in the chunks that remain"));
    whole = whole && finite;
  }
  const auto& heads = pairs.heads;
  const Correlations all = correlations(heads.x, heads.y, heads.layer, heads.names);
  const auto degrees_of_freedom = static_cast<double>(pairs.text.fewest - 1);
  Jackknife result{pairs.text.numbers.size(), degrees_of_freedom, interval_of(all[0], without, 0, degrees_of_freedom),
                   interval_of(all[1], without, 1, degrees_of_freedom)};
  if (!whole) return result;
  const double x_noise = noise_of(x, points), y_noise = noise_of(y, points);
  const double pooled = std::max(x_noise / population_variance(heads.x), y_noise / population_variance(heads.y));
  const double within =
      std::max(x_noise / variance_within(heads.x, heads.layer), y_noise / variance_within(heads.y, heads.layer));
  if (pooled > max_noise) result.pearson = too_noisy(pooled, "the heads");
  if (within > max_noise) result.pearson_within = too_noisy(within, "the heads within layers");
  return result;
}

OrderedJson to_json(const Jackknife& jackknife) {
  OrderedJson json;
  json["units"] = jackknife.units;
  json["degrees_of_freedom"] = jackknife.degrees_of_freedom;
  json["interval_level"] = confidence;
  put(json, "pearson_interval", jackknife.pearson);
  put(json, "pearson_within_layers_interval", jackknife.pearson_within);
  return json;
}

OrderedJson to_json(const LayerRange& range) {
  OrderedJson json;
  json["units"] = range.layers;
  const Measured no_level = Measured::none(std::string(no_layer_interval));
  put(json, "interval_level", no_level);
  put(json, "pearson_interval", no_level);
  put(json, "pearson_within_layers_interval", no_level);
  put(json, "pearson_range", range.pearson);
  put(json, "pearson_within_layers_range", range.pearson_within);
  return json;
}

}  // namespace gainlens::analyses
