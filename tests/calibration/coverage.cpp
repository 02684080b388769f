#include "calibration/coverage.h"

#include "analyses/equivalence.h"
#include "analyses/jackknife.h"
#include "analyses/neighbours.h"
#include "calibration/simulation.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <span>
#include <utility>

namespace gainlens::testing {
namespace {

using analyses::ByChunk;
using analyses::ChunkedPairs;
using analyses::ClusteredPairs;
using analyses::Interval;
using analyses::Length;
using analyses::Maybe;
using analyses::Measured;
using Values = std::vector<double>;

constexpr std::int64_t percentile_draws = 400;

/// Counts the intervals of one method.
class Counter {
 public:
  Counter(std::string method, std::string number, double noise, std::size_t units, double neighbours,
          double nominal = analyses::confidence)
      : row_{std::move(method), std::move(number), noise, units, neighbours, nominal, 0, 0} {}

  void add(const Maybe<Interval>& interval, double truth) {
    ++simulations_;
    if (!interval) return;
    ++stated_;
    held_ += interval->low <= truth && truth <= interval->high ? 1 : 0;
  }
  Coverage row() const {
    Coverage row = row_;
    row.stated = stated_ / simulations_;
    row.covered = stated_ > 0 ? held_ / stated_ : std::numeric_limits<double>::quiet_NaN();
    return row;
  }

 private:
  Coverage row_;
  double simulations_ = 0, stated_ = 0, held_ = 0;
};

std::vector<Coverage> rows_of(const std::vector<Counter>& counters) {
  std::vector<Coverage> rows;
  for (const Counter& counter : counters) rows.push_back(counter.row());
  return rows;
}

/// Stationary first-order autoregression of variance 1.
Values autoregression(std::size_t count, double correlation, Random& random) {
  Values values;
  for (std::size_t i = 0; i < count; ++i) {
    values.push_back(i == 0 ? normal(random)
                            : correlation * values.back() + std::sqrt(1 - correlation * correlation) * normal(random));
  }
  return values;
}

runfile::Request request_of(std::vector<std::int64_t> lengths, std::size_t chunks, bool nested) {
  runfile::Request request;
  request.lengths = std::move(lengths);
  request.samples = static_cast<std::int64_t>(chunks);
  request.nested = nested;
  return request;
}

Length length_of(std::size_t index, std::int64_t tokens, std::size_t chunks) {
  Length length{index, tokens, {}, 0};
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) length.samples.push_back(static_cast<std::int64_t>(chunk));
  return length;
}

/// The contribution of the text to a chunk's value: the sum of the chunk's 1k parts, scaled so that independent parts
/// give variance 1.
double text_value(const Values& parts, const runfile::TextSpan& span) {
  double sum = 0;
  for (std::int64_t part = span.begin / 1024; part < span.end / 1024; ++part)
    sum += parts.at(static_cast<std::size_t>(part));
  return sum / std::sqrt(static_cast<double>(span.size()) / 1024);
}

/// Chunk values of one length around `mean`, of variance 1.
ByChunk chunk_values(const runfile::Request& request, std::int64_t tokens, const Values& parts, double mean,
                     Random& random) {
  ByChunk values;
  for (std::int64_t chunk = 0; chunk < request.samples; ++chunk) {
    values[chunk] = mean + 0.8 * text_value(parts, text_span(layout_of(request), tokens, chunk)) + 0.6 * normal(random);
  }
  return values;
}

/// Pearson's r alone: the ranks and p-values of analyses::correlation would take most of the time.
double pearson(const Values& x, const Values& y) {
  const double x_mean = analyses::mean(x), y_mean = analyses::mean(y);
  double products = 0, x_squares = 0, y_squares = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    products += (x[i] - x_mean) * (y[i] - y_mean);
    x_squares += (x[i] - x_mean) * (x[i] - x_mean);
    y_squares += (y[i] - y_mean) * (y[i] - y_mean);
  }
  return products / std::sqrt(x_squares * y_squares);
}

double quantile(const Values& sorted, double probability) {
  const double place = probability * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  return sorted[below] +
         (place - static_cast<double>(below)) * (sorted[std::min(below + 1, sorted.size() - 1)] - sorted[below]);
}

/// The method used before, for comparison: the percentile interval of a correlation over resamples of independent
/// units.
Interval percentile(std::size_t units, Random& random,
                    const std::function<double(const std::vector<std::size_t>&)>& correlation) {
  Values drawn;
  for (std::int64_t i = 0; i < percentile_draws; ++i) {
    std::vector<std::size_t> resample(units);
    for (std::size_t& unit : resample) unit = static_cast<std::size_t>(random.below(units));
    drawn.push_back(correlation(resample));
  }
  std::sort(drawn.begin(), drawn.end());
  return {quantile(drawn, 0.025), quantile(drawn, 0.975)};
}

constexpr std::size_t simulated_heads = 60, heads_a_layer = 10;

/// True values of the heads. Layers share two fifths of the variance. r is 0.5 between layers and within layers.
ClusteredPairs true_heads(Random& random) {
  ClusteredPairs heads;
  double layer_x = 0, layer_y = 0;
  const auto related = [&](double x) { return 0.5 * x + std::sqrt(0.75) * normal(random); };
  for (std::size_t head = 0; head < simulated_heads; ++head) {
    if (head % heads_a_layer == 0) {
      layer_x = normal(random);
      layer_y = related(layer_x);
    }
    const double x = normal(random);
    heads.x.push_back(std::sqrt(0.4) * layer_x + std::sqrt(0.6) * x);
    heads.y.push_back(std::sqrt(0.4) * layer_y + std::sqrt(0.6) * related(x));
    heads.layer.push_back(head / heads_a_layer);
    heads.head.push_back(head % heads_a_layer);
  }
  return heads;
}

/// Adds the noise of the chunks. Half of its variance moves all heads together, each with a loading of its own. The
/// other half is independent for each head. A chunk that holds several stretches of text has the mean of their noise.
void add_noise(std::vector<std::vector<Values>>& values,
               const std::vector<std::vector<std::vector<std::size_t>>>& stretches, std::size_t count, double noise,
               double neighbours, Random& random) {
  const std::size_t heads = values.front().front().size();
  const Values common = autoregression(count, neighbours, random);
  for (std::size_t head = 0; head < heads; ++head) {
    const double loading = normal(random);
    const Values own = autoregression(count, neighbours, random);
    for (std::size_t length = 0; length < values.size(); ++length) {
      for (std::size_t chunk = 0; chunk < values[length].size(); ++chunk) {
        const auto& parts = stretches[length][chunk];
        for (const std::size_t part : parts) {
          const double step =
              std::sqrt(0.5) * (loading * common[part] + own[part]) / std::sqrt(static_cast<double>(parts.size()));
          values[length][chunk][head] += noise * step;
        }
      }
    }
  }
}

/// The parts of text in each chunk: [length][chunk]. Consecutive: two lengths; a chunk of the longer length has two
/// parts.
std::vector<std::vector<std::vector<std::size_t>>> parts_of(std::size_t chunks, bool consecutive) {
  std::vector<std::vector<std::vector<std::size_t>>> parts(consecutive ? 2 : 1);
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    parts[0].push_back({chunk});
    if (consecutive) parts[1].push_back({2 * chunk, 2 * chunk + 1});
  }
  return parts;
}

/// Sets each head's value to the mean over lengths of the mean over chunks.
void average(const std::vector<std::vector<Values>>& values, Values& heads) {
  std::fill(heads.begin(), heads.end(), 0.0);
  for (const auto& chunks : values) {
    for (const Values& chunk : chunks) {
      for (std::size_t head = 0; head < heads.size(); ++head) {
        heads[head] += chunk[head] / static_cast<double>(chunks.size() * values.size());
      }
    }
  }
}

double resampled(const ChunkedPairs& pairs, const std::vector<std::size_t>& drawn) {
  Values x(pairs.heads.x.size(), 0.0), y(x.size(), 0.0);
  for (const std::size_t chunk : drawn) {
    for (std::size_t head = 0; head < x.size(); ++head) {
      x[head] += pairs.x[0][chunk][head];
      y[head] += pairs.y[0][chunk][head];
    }
  }
  return pearson(x, y);
}

/// The interval of a mean that was used before: Student's, with the variance inflated by the correlation of neighbours,
/// which is corrected for its bias.
Interval inflated(const Values& values, const std::vector<std::int64_t>& chunks) {
  const double r = *analyses::lag_one_correlation(values, chunks) + 1 / static_cast<double>(values.size());
  analyses::Estimate estimate = analyses::mean_estimate(values);
  if (std::abs(r) < 1) estimate.error *= std::sqrt(std::max(1.0, analyses::variance_inflation(r)));
  return student_interval(estimate);
}

/// m -+ 6.747 sqrt(sum of S_t^2) / n^1.5, with S_t the sum of the first t values less t m (Kiefer, Vogelsang and Bunzel
/// 2000).
Interval self_normalised(const Values& values) {
  const double centre = analyses::mean(values), n = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double value : values) {
    sum += value - centre;
    squares += sum * sum;
  }
  const double reach = 6.747 * std::sqrt(squares) / std::pow(n, 1.5);
  return {centre - reach, centre + reach};
}

/// x and y less the means of their layer, all of `heads` heads.
ClusteredPairs without_layer_means(ClusteredPairs pairs, std::size_t heads) {
  for (auto* side : {&pairs.x, &pairs.y}) {
    for (std::size_t first = 0; first < side->size(); first += heads) {
      const double middle = analyses::mean(std::span(*side).subspan(first, heads));
      for (std::size_t i = first; i < first + heads; ++i) (*side)[i] -= middle;
    }
  }
  return pairs;
}

/// The two intervals of r from leaving out layers: as over stretches of text, and with the error of the undivided
/// differences z(-i) - z and Satterthwaite's degrees of freedom.
std::pair<Interval, Interval> layers_left_out(const ClusteredPairs& pairs, std::size_t heads) {
  const double z = std::atanh(pearson(pairs.x, pairs.y));
  Values without;
  for (std::size_t first = 0; first < pairs.x.size(); first += heads) {
    Values x = pairs.x, y = pairs.y;
    for (Values* side : {&x, &y})
      side->erase(side->begin() + std::ptrdiff_t(first), side->begin() + std::ptrdiff_t(first + heads));
    without.push_back(std::atanh(pearson(x, y)));
  }
  const auto count = static_cast<double>(without.size());
  const double centre = analyses::mean(without), bias = (count - 1) * (centre - z);
  double squares = 0, fourths = 0, undivided = 0;
  for (const double value : without) {
    squares += std::pow(value - centre, 2);
    fourths += std::pow(value - centre, 4);
    undivided += std::pow(value - z, 2);
  }
  const auto back = [](const Interval& ends) { return Interval{std::tanh(ends.low), std::tanh(ends.high)}; };
  return {
      back(analyses::student_interval({z - bias, std::hypot(analyses::jackknife_error(without), bias / 2), count - 1})),
      back(analyses::student_interval({z, std::sqrt(undivided), std::max(1.0, squares * squares / fourths)}))};
}

}  // namespace

std::vector<Coverage> cover_means(std::size_t chunks, double neighbours, std::int64_t simulations, std::uint64_t seed) {
  std::vector<Counter> counters = {
      {"Student", "mean over chunks", 0, chunks, neighbours},
      {"Student, of the equivalence test", "mean over chunks", 0, chunks, neighbours, 0.9}};
  for (std::int64_t i = 0; i < simulations; ++i) {
    Random random(seed, static_cast<std::uint64_t>(i));
    const Values values = autoregression(chunks, neighbours, random);
    counters[0].add(analyses::mean_interval(values), 0);
    counters[1].add(analyses::test_equivalence(values, 1.0).interval, 0);
  }
  return rows_of(counters);
}

std::vector<Coverage> cover_changes(std::size_t chunks, double neighbours, std::int64_t simulations,
                                    std::uint64_t seed) {
  struct Case {
    std::int64_t shorter;
    bool nested;
    std::string name;
  };
  const std::vector<Case> cases = {
      {1024, true, "nested"}, {4096, false, "consecutive 4k, 8k"}, {1024, false, "consecutive 1k, 8k"}};
  constexpr double shorter_mean = 5, longer_mean = 10;  // in standard deviations of a chunk
  std::vector<Counter> counters;
  for (const Case& c : cases) {
    counters.emplace_back("difference of means", c.name, 0, chunks, neighbours);
    counters.emplace_back("ratio of means", c.name, 0, chunks, neighbours);
  }
  for (std::int64_t i = 0; i < simulations; ++i) {
    Random random(seed, static_cast<std::uint64_t>(i));
    const Values parts = autoregression(8 * chunks, neighbours, random);
    for (std::size_t k = 0; k < cases.size(); ++k) {
      const runfile::Request request = request_of({cases[k].shorter, 8192}, chunks, cases[k].nested);
      const Length short_length = length_of(0, cases[k].shorter, chunks), long_length = length_of(1, 8192, chunks);
      const ByChunk shorter = chunk_values(request, cases[k].shorter, parts, shorter_mean, random);
      const ByChunk longer = chunk_values(request, 8192, parts, longer_mean, random);
      const auto difference = difference_of_means(request, long_length, longer, short_length, shorter);
      counters[2 * k].add(student_interval(*difference->estimate), longer_mean - shorter_mean);
      counters[2 * k + 1].add(ratio_of_means(request, long_length, longer, short_length, shorter)->interval,
                              longer_mean / shorter_mean);
    }
  }
  return rows_of(counters);
}

std::vector<Coverage> cover_correlations(std::size_t chunks, bool consecutive, double noise, double neighbours,
                                         std::int64_t simulations, std::uint64_t seed) {
  const std::string method = consecutive ? "text left out, consecutive 4k, 8k" : "text left out";
  std::vector<Counter> counters = {{method, "Pearson", noise, chunks, neighbours},
                                   {method, "Pearson within layers", noise, chunks, neighbours},
                                   {"percentile bootstrap of chunks (not used)", "Pearson", noise, chunks, neighbours}};
  std::vector<Length> lengths = {length_of(0, 4096, chunks)};
  if (consecutive) lengths.push_back(length_of(1, 8192, chunks));
  std::vector<std::int64_t> tokens;
  for (const Length& length : lengths) tokens.push_back(length.tokens);
  const auto parts = parts_of(chunks, consecutive);
  for (std::int64_t i = 0; i < simulations; ++i) {
    Random random(seed, static_cast<std::uint64_t>(i));
    ChunkedPairs pairs{true_heads(random), text_stretches(request_of(tokens, chunks, false), lengths), {}, {}};
    const double truth = pearson(pairs.heads.x, pairs.heads.y);
    const double within = *analyses::correlation_within(pairs.heads.x, pairs.heads.y, pairs.heads.layer).pearson;
    pairs.x.assign(lengths.size(), std::vector<Values>(chunks, pairs.heads.x));
    pairs.y.assign(lengths.size(), std::vector<Values>(chunks, pairs.heads.y));
    for (auto* side : {&pairs.x, &pairs.y})
      add_noise(*side, parts, (consecutive ? 2 : 1) * chunks, noise, neighbours, random);
    average(pairs.x, pairs.heads.x);
    average(pairs.y, pairs.heads.y);
    const auto found = leave_out_text(pairs);
    const auto of = [&](const Maybe<Interval> analyses::Jackknife::*which) {
      return found ? (*found).*which : Maybe<Interval>::none(found.reason());
    };
    counters[0].add(of(&analyses::Jackknife::pearson), truth);
    counters[1].add(of(&analyses::Jackknife::pearson_within), within);
    if (consecutive) continue;
    counters[2].add(percentile(chunks, random, [&](const auto& drawn) { return resampled(pairs, drawn); }), truth);
  }
  if (consecutive) counters.pop_back();
  return rows_of(counters);
}

std::vector<Coverage> cover_alike_chunks(std::size_t chunks, double neighbours, std::int64_t simulations,
                                         std::uint64_t seed) {
  std::vector<Counter> counters = {
      {"self-normalised (not used)", "mean over chunks", 0, chunks, neighbours},
      {"Student with an inflated variance (not used)", "mean over chunks", 0, chunks, neighbours},
      {"Student, chunks as independent", "mean over chunks", 0, chunks, neighbours}};
  std::vector<std::int64_t> numbers(chunks);
  std::iota(numbers.begin(), numbers.end(), std::int64_t{0});
  for (std::int64_t i = 0; i < simulations; ++i) {
    Random random(seed, static_cast<std::uint64_t>(i));
    const Values values = autoregression(chunks, neighbours, random);
    const Interval plain = *analyses::mean_interval(values), own = self_normalised(values);
    counters[0].add(own.high - own.low > plain.high - plain.low ? own : plain, 0);
    counters[1].add(inflated(values, numbers), 0);
    counters[2].add(plain, 0);
  }
  return rows_of(counters);
}

std::vector<Coverage> cover_layers(std::size_t layers, double sizes, double neighbours, std::int64_t simulations,
                                   std::uint64_t seed) {
  ClusteredModel model;
  model.layers = layers;
  model.heads = 8;
  model.group_size = 1;
  model.layer_share = 0.5;
  model.autocorrelation = neighbours;
  model.effect = 0.6;
  // y is its own value plus the effect times the part of x that is not shared by the layer, which has half of the
  // variance. The size of a layer is the same in x and y, so it changes neither correlation.
  const double rest = 1 - model.layer_share;
  const double truths[] = {model.effect * rest / std::sqrt(1 + model.effect * model.effect * rest),
                           model.effect / std::sqrt(1 + model.effect * model.effect)};
  std::vector<Counter> counters;
  for (const std::string within : {"", " within layers"}) {
    for (const char* method : {"layers left out, Student (not used)", "layers left out, Satterthwaite (not used)",
                               "percentile bootstrap of layers (not used)"}) {
      counters.emplace_back(method, fmt::format("Pearson{}, sizes {:g}", within, sizes), 0, layers, neighbours);
    }
  }
  for (std::int64_t i = 0; i < simulations; ++i) {
    Random random(seed, static_cast<std::uint64_t>(i));
    ClusteredPairs pairs = simulate(model, random);
    for (std::size_t first = 0; first < pairs.x.size(); first += model.heads) {
      const double size = std::exp(sizes * normal(random));
      for (std::size_t head = first; head < first + model.heads; ++head) {
        pairs.x[head] *= size;
        pairs.y[head] *= size;
      }
    }
    for (const std::size_t within : {0, 1}) {
      if (within == 1) pairs = without_layer_means(std::move(pairs), model.heads);
      const auto [student, satterthwaite] = layers_left_out(pairs, model.heads);
      counters[3 * within].add(student, truths[within]);
      counters[3 * within + 1].add(satterthwaite, truths[within]);
      const auto resampled_layers = [&](const std::vector<std::size_t>& drawn) {
        Values x, y;
        for (const std::size_t layer : drawn) {
          for (std::size_t head = 0; head < model.heads; ++head) {
            x.push_back(pairs.x[layer * model.heads + head]);
            y.push_back(pairs.y[layer * model.heads + head]);
          }
        }
        return pearson(x, y);
      };
      counters[3 * within + 2].add(percentile(layers, random, resampled_layers), truths[within]);
    }
  }
  return rows_of(counters);
}

}  // namespace gainlens::testing
