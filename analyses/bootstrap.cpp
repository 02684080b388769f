#include "analyses/bootstrap.h"

#include "core/random.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>

namespace gainlens::analyses {
namespace {

constexpr std::uint64_t layer_stream = 0x1A7E, chunk_stream = 0xC4A0;
constexpr std::size_t statistics = 4;

/// Pooled Pearson, pooled Spearman, and both within layers.
std::array<Measured, statistics> correlations(const std::vector<double>& x, const std::vector<double>& y,
                                              const std::vector<std::size_t>& layer, const PairNames& names) {
  const Correlation pooled = correlation(x, y, names), within = correlation_within(x, y, layer, names);
  return {pooled.pearson, pooled.spearman, within.pearson, within.spearman};
}

/// Values of a sorted sample at a probability, between its neighbours linearly.
double quantile(const std::vector<double>& sorted, double probability) {
  const double place = probability * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

/// Collects resampled correlations and turns them into percentile intervals.
class Collector {
 public:
  void add(const std::array<Measured, statistics>& values) {
    for (std::size_t s = 0; s < statistics; ++s) {
      if (values[s]) {
        drawn_[s].push_back(*values[s]);
      } else {
        ++undefined_[s];
        reason_[s] = values[s].reason();
      }
    }
  }
  /// A resample in which a head has no value at all.
  void add_incomplete() { add({none_, none_, none_, none_}); }

  Bootstrap finish(std::int64_t units, const Resampling& resampling) {
    return {units, resampling.bootstraps, resampling.seed, interval(0), interval(1), interval(2), interval(3)};
  }

 private:
  Maybe<Interval> interval(std::size_t s) {
    if (undefined_[s] > 0) {
      return Maybe<Interval>::none(
          fmt::format("{} of {} resamples have no correlation ({})", undefined_[s], undefined_[s] + drawn_[s].size(), reason_[s]));
    }
    std::sort(drawn_[s].begin(), drawn_[s].end());
    const double tail = (1 - confidence) / 2;
    return Interval{quantile(drawn_[s], tail), quantile(drawn_[s], 1 - tail)};
  }

  const Measured none_ = Measured::none("a head has no value in the chunks drawn");
  std::array<std::vector<double>, statistics> drawn_;
  std::array<std::size_t, statistics> undefined_{};
  std::array<std::string, statistics> reason_;
};

/// For each point the mean of its values over the drawn chunks, NaN where none has one.
void add_mean(const std::vector<std::vector<double>>& chunks, const std::vector<std::size_t>& drawn, double weight,
              std::vector<double>& sums) {
  for (std::size_t point = 0; point < sums.size(); ++point) {
    double sum = 0;
    std::size_t count = 0;
    for (const std::size_t chunk : drawn) {
      const double value = chunks[chunk][point];
      if (!std::isfinite(value)) continue;
      sum += value;
      ++count;
    }
    sums[point] += weight * sum / static_cast<double>(count);  // 0/0 is the NaN wanted
  }
}

std::vector<std::size_t> draw(Random& random, std::size_t count) {
  std::vector<std::size_t> drawn(count);
  for (std::size_t& chunk : drawn) chunk = static_cast<std::size_t>(random.below(count));
  return drawn;
}

bool all_finite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

}  // namespace

Maybe<Bootstrap> bootstrap_layers(const ClusteredPairs& pairs, const std::vector<std::string>& kind, const Resampling& resampling) {
  std::map<std::size_t, std::vector<std::size_t>> points;  // layer -> points
  for (std::size_t i = 0; i < pairs.x.size(); ++i) points[pairs.layer[i]].push_back(i);
  std::map<std::string_view, std::vector<std::size_t>> layers;  // kind -> layers
  for (const auto& [layer, members] : points) layers[kind.at(layer)].push_back(layer);
  if (layers.empty()) return Maybe<Bootstrap>::none("no head has both values");
  for (const auto& [name, members] : layers) {
    if (std::cmp_less(members.size(), least_layers)) {
      return Maybe<Bootstrap>::none(fmt::format("refused: layers with {} attention: {}; a bootstrap over layers needs at least {}", name,
                                                members.size(), least_layers));
    }
  }

  Random random(resampling.seed, layer_stream);
  Collector collector;
  std::vector<double> x, y;
  std::vector<std::size_t> cluster;
  for (std::int64_t i = 0; i < resampling.bootstraps; ++i) {
    x.clear();
    y.clear();
    cluster.clear();
    std::size_t number = 0;  // a layer drawn twice is two layers
    for (const auto& [name, members] : layers) {
      for (std::size_t k = 0; k < members.size(); ++k, ++number) {
        for (const std::size_t point : points.at(members[static_cast<std::size_t>(random.below(members.size()))])) {
          x.push_back(pairs.x[point]);
          y.push_back(pairs.y[point]);
          cluster.push_back(number);
        }
      }
    }
    collector.add(correlations(x, y, cluster, pairs.names));
  }
  return collector.finish(static_cast<std::int64_t>(points.size()), resampling);
}

Maybe<Bootstrap> bootstrap_chunks(const ChunkedPairs& pairs, const Resampling& resampling) {
  if (pairs.heads.x.empty()) return Maybe<Bootstrap>::none("no head has both values");
  std::size_t fewest = pairs.x.front().size();
  for (const auto& chunks : pairs.x) fewest = std::min(fewest, chunks.size());
  if (std::cmp_less(fewest, least_chunks)) {
    return Maybe<Bootstrap>::none(
        fmt::format("refused: {} {}; a bootstrap over chunks needs at least {}", fewest,
                    pairs.nested ? "chunks are complete at every length" : "complete chunks at one of the lengths", least_chunks));
  }

  Random random(resampling.seed, chunk_stream);
  Collector collector;
  const double weight = 1 / static_cast<double>(pairs.x.size());
  std::vector<double> x(pairs.heads.x.size()), y(pairs.heads.x.size());
  for (std::int64_t i = 0; i < resampling.bootstraps; ++i) {
    std::fill(x.begin(), x.end(), 0);
    std::fill(y.begin(), y.end(), 0);
    std::vector<std::size_t> drawn;
    for (std::size_t length = 0; length < pairs.x.size(); ++length) {
      if (length == 0 || !pairs.nested) drawn = draw(random, pairs.x[length].size());
      add_mean(pairs.x[length], drawn, weight, x);
      add_mean(pairs.y[length], drawn, weight, y);
    }
    if (all_finite(x) && all_finite(y)) {
      collector.add(correlations(x, y, pairs.heads.layer, pairs.heads.names));
    } else {
      collector.add_incomplete();
    }
  }
  return collector.finish(static_cast<std::int64_t>(fewest), resampling);
}

OrderedJson to_json(const Bootstrap& bootstrap) {
  OrderedJson json;
  json["units"] = bootstrap.units;
  json["resamples"] = bootstrap.resamples;
  json["seed"] = bootstrap.seed;
  json["interval_level"] = confidence;
  put(json, "pearson_interval", bootstrap.pearson);
  put(json, "spearman_interval", bootstrap.spearman);
  put(json, "pearson_within_layers_interval", bootstrap.pearson_within);
  put(json, "spearman_within_layers_interval", bootstrap.spearman_within);
  return json;
}

}  // namespace gainlens::analyses
