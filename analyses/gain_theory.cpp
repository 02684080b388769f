#include "analyses/gain_theory.h"

#include "analyses/cells.h"
#include "analyses/gain_model.h"
#include "analyses/holm.h"
#include "analyses/statistics.h"
#include "core/check.h"
#include "core/counted.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace gainlens::analyses {
namespace {

using ByLength = std::vector<std::vector<GainMeans>>;  // [length][chunk]

/// Means over heads of each chunk that every length has.
Maybe<ByLength> chunk_means(const runfile::RunReader& reader, const std::vector<Length>& lengths,
                            const std::vector<std::size_t>& layers) {
  constexpr std::array<std::string_view, 3> inputs = {"n_eff", "residual", "kalman_gain"};
  std::vector<std::map<std::int64_t, GainMeans>> by_length;
  for (const Length& length : lengths) {
    std::array<std::map<std::int64_t, double>, inputs.size()> found;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto input = aggregate(reader, inputs[i], length, layers);
      if (!input) return Maybe<ByLength>::none(input.reason());
      for (std::size_t k = 0; k < input->chunks.size(); ++k) found[i][input->chunks[k]] = input->chunk_means[k];
    }
    auto& means = by_length.emplace_back();
    for (const auto& [chunk, n_eff] : found[0]) {
      if (found[1].contains(chunk) && found[2].contains(chunk))
        means[chunk] = {n_eff, found[1][chunk], found[2][chunk]};
    }
  }
  ByLength result(lengths.size());
  for (const auto& [chunk, means] : by_length.front()) {
    const std::int64_t number = chunk;
    if (!std::all_of(by_length.begin(), by_length.end(), [&](const auto& length) { return length.contains(number); }))
      continue;
    for (std::size_t length = 0; length < lengths.size(); ++length)
      result[length].push_back(by_length[length].at(chunk));
  }
  return result;
}

constexpr std::size_t none_left_out = static_cast<std::size_t>(-1);

GainMeans mean_without(const std::vector<GainMeans>& chunks, std::size_t left_out) {
  GainMeans sum{0, 0, 0};
  double n = 0;
  for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) {
    if (chunk == left_out) continue;
    sum.n_eff += chunks[chunk].n_eff;
    sum.residual += chunks[chunk].residual;
    sum.gain += chunks[chunk].gain;
    n += 1;
  }
  return {sum.n_eff / n, sum.residual / n, sum.gain / n};
}

/// ln(K_opt / K) at every length above the shortest, for the means without one chunk.
Maybe<std::vector<double>> log_ratios(const ByLength& values, std::size_t left_out, double prior_variance) {
  using Result = Maybe<std::vector<double>>;
  const Measured lambda = fitted_prior_precision(mean_without(values.front(), left_out), prior_variance);
  if (!lambda) return Result::none(lambda.reason());
  std::vector<double> ratios;
  for (std::size_t length = 1; length < values.size(); ++length) {
    const GainMeans means = mean_without(values[length], left_out);
    const double ratio = predicted_gain(means, prior_variance, *lambda) / means.gain;
    if (!(ratio > 0 && std::isfinite(ratio)))
      return Result::none("K is 0 or not finite at one of the lengths; a relative error needs K > 0");
    ratios.push_back(std::log(ratio));
  }
  return ratios;
}

Maybe<LeftOutErrors> left_out_errors(const ByLength& values, double prior_variance) {
  const auto chunks = static_cast<double>(values.front().size());
  GainErrors sums{0, 0, 0, 0};
  for (std::size_t chunk = 0; chunk < values.front().size(); ++chunk) {
    std::vector<GainMeans> judged;
    for (std::size_t length = 1; length < values.size(); ++length) judged.push_back(values[length][chunk]);
    const auto errors =
        gain_errors(mean_without(values.front(), chunk), judged, values.front()[chunk].gain, prior_variance);
    if (!errors) return Maybe<LeftOutErrors>::none(errors.reason());
    sums.max_relative += errors->max_relative / chunks;
    sums.max_constant += errors->max_constant / chunks;
    sums.mean_relative += errors->mean_relative / chunks;
    sums.mean_constant += errors->mean_constant / chunks;
  }
  return LeftOutErrors{sums.max_relative, sums.max_constant, sums.skill()};
}

Maybe<TheoryError> judge(std::int64_t tokens, const std::vector<double>& pseudo_values, double constant_error,
                         double margin) {
  const Equivalence test = test_equivalence(pseudo_values, std::log1p(margin));
  if (!test.interval) return Maybe<TheoryError>::none(test.interval.reason());
  const Interval interval{std::expm1(test.interval->low), std::expm1(test.interval->high)};
  return TheoryError{tokens, std::expm1(mean(pseudo_values)), interval, test, constant_error};
}

constexpr std::array<std::string_view, 3> inputs = {"n_eff", "residual", "kalman_gain"};

template <typename... Results>
std::string first_reason(const Results&... results) {
  std::string reason;
  ((reason = reason.empty() ? results.reason() : reason), ...);
  return reason;
}

GainTheoryPoint read_point(const runfile::RunReader& reader, const Length& length,
                           const std::vector<std::size_t>& layers, double prior_variance) {
  const Measured unset = Measured::none("not predicted yet");
  GainTheoryPoint point{length,
                        aggregate(reader, "n_eff", length, layers),
                        aggregate(reader, "residual", length, layers),
                        aggregate(reader, "kalman_gain", length, layers),
                        aggregate(reader, "kalman_gain_scaled", length, layers),
                        aggregate(reader, "observation_precision", length, layers),
                        unset,
                        unset,
                        unset,
                        unset,
                        unset};
  if (const std::string reason = other_estimator(reader.request()); !reason.empty()) {
    point.aggregated_precision = Measured::none(reason);
    return point;
  }
  point.aggregated_precision =
      point.n_eff && point.residual
          ? Measured(analyses::aggregated_precision({point.n_eff->mean, point.residual->mean, 0}, prior_variance))
          : Measured::none(first_reason(point.n_eff, point.residual));
  return point;
}

/// The lambda with which the prediction is exact at this length.
Measured fit(const GainTheoryPoint& point, double prior_variance) {
  if (!point.aggregated_precision || !point.kalman_gain) {
    return Measured::none(first_reason(point.aggregated_precision, point.kalman_gain));
  }
  return fitted_prior_precision({point.n_eff->mean, point.residual->mean, point.kalman_gain->mean}, prior_variance);
}

void judge(GainTheoryPoint& point, const GainTheoryPoint& shortest, const Measured& lambda) {
  if (!lambda || !point.aggregated_precision || !point.kalman_gain) {
    const std::string reason = first_reason(lambda, point.aggregated_precision, point.kalman_gain);
    point.predicted_gain = point.relative_error = point.constant_error = point.skill = Measured::none(reason);
    return;
  }
  point.predicted_gain = *point.aggregated_precision / (*lambda + *point.aggregated_precision);
  if (point.length.index == shortest.length.index) {
    point.relative_error = point.constant_error = point.skill = Measured::none("lambda is fitted at this length");
    return;
  }
  const double measured = point.kalman_gain->mean;
  if (!(measured > 0)) {
    point.relative_error = point.constant_error = point.skill =
        Measured::none("K is 0 here; a relative error needs K > 0");
    return;
  }
  point.relative_error = std::abs(*point.predicted_gain - measured) / measured;
  point.constant_error = std::abs(shortest.kalman_gain->mean - measured) / measured;
  point.skill = *point.constant_error > 0
                    ? Measured(1 - *point.relative_error / *point.constant_error)
                    : Measured::none("K does not change from the shortest length, so the constant has no error");
}

void summarise(GainTheory& theory) {
  std::vector<double> errors, constant_errors;
  for (const GainTheoryPoint& point : theory.points) {
    if (!point.relative_error || !point.constant_error) continue;
    errors.push_back(*point.relative_error);
    constant_errors.push_back(*point.constant_error);
  }
  if (errors.empty()) {
    const std::string reason = theory.points.size() < 2
                                   ? "the run has one length; a prediction needs a second one"
                                   : first_reason(theory.prior_precision, theory.points.back().relative_error);
    theory.max_relative_error = theory.max_constant_error = theory.skill = Measured::none(reason);
    return;
  }
  theory.max_relative_error = *std::max_element(errors.begin(), errors.end());
  theory.max_constant_error = *std::max_element(constant_errors.begin(), constant_errors.end());
  const double scale = mean(constant_errors);
  theory.skill = scale > 0 ? Measured(1 - mean(errors) / scale)
                           : Measured::none("K does not change with length, so the constant has no error");
}

void put_mean(OrderedJson& object, const std::string& name, const Maybe<Aggregate>& aggregate) {
  put(object, name, aggregate ? Measured(aggregate->mean) : Measured::none(aggregate.reason()));
}

}  // namespace

const TheoryError& TheoryEquivalence::worst() const {
  ASSERT(!lengths.empty(), "a prediction of no length");
  return *std::max_element(lengths.begin(), lengths.end(), [](const TheoryError& a, const TheoryError& b) {
    return std::abs(a.error) < std::abs(b.error);
  });
}

Maybe<TheoryEquivalence> test_theory(const ByLength& values, const std::vector<std::int64_t>& tokens,
                                     double prior_variance, double margin) {
  using Result = Maybe<TheoryEquivalence>;
  ASSERT(values.size() == tokens.size(), "{} lengths of values for {} of tokens", values.size(), tokens.size());
  if (values.size() < 2) return Result::none("only one length has a complete chunk; a prediction needs a second one");
  const std::size_t chunks = values.front().size();
  if (chunks < min_theory_chunks) {
    return Result::none(
        fmt::format("not testable: {} complete at every length; the error on unseen text needs at least {}",
                    counted_are(chunks, "chunk"), min_theory_chunks));
  }
  const auto n = static_cast<double>(chunks);
  const auto all = log_ratios(values, none_left_out, prior_variance);
  if (!all) return Result::none(all.reason());
  std::vector<std::vector<double>> pseudo_values(all->size());  // [length above the shortest][chunk]
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    const auto others = log_ratios(values, chunk, prior_variance);
    if (!others) return Result::none(others.reason());
    for (std::size_t i = 0; i < all->size(); ++i) pseudo_values[i].push_back(n * (*all)[i] - (n - 1) * (*others)[i]);
  }
  const auto left_out = left_out_errors(values, prior_variance);
  if (!left_out) return Result::none(left_out.reason());
  TheoryEquivalence test{margin, static_cast<std::int64_t>(chunks), {}, *left_out};
  const double shortest = mean_without(values.front(), none_left_out).gain;
  for (std::size_t i = 0; i < pseudo_values.size(); ++i) {
    const double constant_error = shortest / mean_without(values[i + 1], none_left_out).gain - 1;
    const auto error = judge(tokens[i + 1], pseudo_values[i], constant_error, margin);
    if (!error) return Result::none(error.reason());
    test.lengths.push_back(*error);
  }
  return test;
}

Maybe<TheoryEquivalence> theory_equivalence(const runfile::RunReader& reader, const Options& options) {
  if (const std::string reason = other_estimator(reader.request()); !reason.empty())
    return Maybe<TheoryEquivalence>::none(reason);
  const std::vector<Length> lengths = usable_lengths(reader);
  const auto means = chunk_means(reader, lengths, deep_layers(reader, options));
  if (!means) return Maybe<TheoryEquivalence>::none(means.reason());
  std::vector<std::int64_t> tokens;
  tokens.reserve(lengths.size());
  for (const Length& length : lengths) tokens.push_back(length.tokens);
  return test_theory(*means, tokens, prior_variance(reader.request()), options.theory_margin);
}

OrderedJson to_json(const TheoryEquivalence& test) {
  OrderedJson json;
  json["method"] = "jackknife over chunks; Student's t of the pseudo-values of ln(K_opt / K)";
  json["chunks"] = test.chunks;
  json["lengths"] = OrderedJson::array();
  std::vector<double> exceeds;
  for (const TheoryError& length : test.lengths) exceeds.push_back(*length.log_ratio.exceeds_p);
  const std::vector<double> adjusted = holm(exceeds);
  for (std::size_t i = 0; i < test.lengths.size(); ++i) {
    const TheoryError& length = test.lengths[i];
    OrderedJson entry{{"tokens", length.tokens}, {"error", length.error}};
    put(entry, "error_interval_90", length.interval);
    put(entry, "within_margin_p", length.log_ratio.p);
    put(entry, "beyond_margin_p", length.log_ratio.exceeds_p);
    entry["beyond_margin_p_holm"] = adjusted[i];
    entry["constant_error"] = length.constant_error;
    json["lengths"].push_back(std::move(entry));
  }
  json["left_out"] = {{"mean_max_relative_error", test.left_out.relative},
                      {"mean_max_constant_error", test.left_out.constant}};
  put(json["left_out"], "skill", test.left_out.skill);
  return json;
}

OrderedJson to_json(const CellError& cell) {
  return {{"layer", cell.layer},
          {"head", cell.head},
          {"max_relative_error", cell.max_relative_error},
          {"max_constant_error", cell.max_constant_error}};
}

Maybe<CellErrors> cell_errors(const runfile::RunReader& reader, const Options& options) {
  if (const std::string reason = other_estimator(reader.request()); !reason.empty())
    return Maybe<CellErrors>::none(reason);
  const std::vector<Length> lengths = usable_lengths(reader);
  if (lengths.size() < 2)
    return Maybe<CellErrors>::none("only one length has a complete chunk; a prediction needs a second one");
  std::vector<Cells> cells;
  for (const std::string_view input : inputs) {
    auto read = Cells::read(reader, fmt::format("summary/{}", input));
    if (!read) return Maybe<CellErrors>::none(read.reason());
    cells.push_back(*read);
  }
  CellErrors result{{}, 0, 0, 0, {}, 0};
  std::size_t values_left_out = 0;  // unused: a head is left out, and counted, only if no chunk has a value
  for (const std::size_t layer : deep_layers(reader, options)) {
    for (std::size_t head = 0; head < cells[0].heads(); ++head) {
      std::vector<GainMeans> means;
      for (const Length& length : lengths) {
        const auto read = [&](std::size_t i) {
          return mean_over_samples(cells[i], length, layer, head, 0, values_left_out);
        };
        means.push_back({read(0), read(1), read(2)});
      }
      const auto errors = gain_errors(means.front(), {means.begin() + 1, means.end()}, means.front().gain,
                                      prior_variance(reader.request()));
      if (errors) {
        result.cells.push_back(
            {reader.layers()[layer], static_cast<std::int64_t>(head), errors->max_relative, errors->max_constant});
      } else {
        ++result.left_out;
      }
    }
  }
  if (result.cells.empty())
    return Maybe<CellErrors>::none("no deep head has a K between 0 and 1 and finite n_eff and S at every length");
  std::vector<double> relative, constant;
  for (const CellError& cell : result.cells) {
    relative.push_back(cell.max_relative_error);
    constant.push_back(cell.max_constant_error);
    result.better_than_constant += cell.max_relative_error < cell.max_constant_error ? 1 : 0;
  }
  result.median_error = median(relative);
  result.median_constant_error = median(constant);
  result.worst = *std::max_element(
      result.cells.begin(), result.cells.end(),
      [](const CellError& a, const CellError& b) { return a.max_relative_error < b.max_relative_error; });
  return result;
}

OrderedJson to_json(const CellErrors& errors) {
  OrderedJson json;
  json["heads"] = errors.cells.size();
  json["heads_left_out"] = errors.left_out;
  json["median_max_relative_error"] = errors.median_error;
  json["median_max_constant_error"] = errors.median_constant_error;
  json["heads_better_than_constant"] = errors.better_than_constant;
  json["worst"] = to_json(errors.worst);
  json["cells"] = to_json(errors.cells);
  return json;
}

GainTheory gain_theory(const runfile::RunReader& reader, const Options& options) {
  const std::vector<std::size_t> layers = deep_layers(reader, options);
  const Measured unset = Measured::none("not fitted yet");
  const double prior_variance = analyses::prior_variance(reader.request());
  check(options);
  GainTheory theory{.deep_layers = original_layers(reader, layers),
                    .prior_strength = prior_observations,
                    .prior_variance = prior_variance,
                    .prior_precision = unset,
                    .max_relative_error = unset,
                    .max_constant_error = unset,
                    .skill = unset,
                    .points = {},
                    .margin = options.theory_margin,
                    .unseen = theory_equivalence(reader, options),
                    .cells = cell_errors(reader, options)};
  for (const Length& length : usable_lengths(reader))
    theory.points.push_back(read_point(reader, length, layers, prior_variance));
  const GainTheoryPoint shortest = theory.points.front();
  theory.prior_precision = fit(shortest, prior_variance);
  for (GainTheoryPoint& point : theory.points) judge(point, shortest, theory.prior_precision);
  summarise(theory);
  return theory;
}

OrderedJson to_json(const GainTheory& theory) {
  OrderedJson json;
  json["deep_layers"] = theory.deep_layers;
  json["window"] = "last-quarter queries";
  json["nu"] = theory.prior_strength;
  json["sigma0_squared"] = theory.prior_variance;
  json["fit"] = "one lambda, solved at the shortest length; judged on the same chunks";
  put(json, "lambda", theory.prior_precision);
  put(json, "max_relative_error", theory.max_relative_error);
  put(json, "max_constant_error", theory.max_constant_error);
  put(json, "skill", theory.skill);
  json["points"] = OrderedJson::array();
  for (const GainTheoryPoint& point : theory.points) {
    OrderedJson entry;
    entry["tokens"] = point.length.tokens;
    entry["chunks"] = point.length.samples.size();
    put_mean(entry, "n_eff", point.n_eff);
    put_mean(entry, "residual", point.residual);
    put(entry, "aggregated_precision", point.aggregated_precision);
    put_mean(entry, "observation_precision", point.observation_precision);
    put_mean(entry, "kalman_gain", point.kalman_gain);
    if (point.kalman_gain) put(entry, "kalman_gain_interval", point.kalman_gain->interval);
    put_mean(entry, "kalman_gain_scaled", point.kalman_gain_scaled);
    put(entry, "predicted_gain", point.predicted_gain);
    put(entry, "relative_error", point.relative_error);
    put(entry, "constant_error", point.constant_error);
    put(entry, "skill", point.skill);
    json["points"].push_back(std::move(entry));
  }
  json["margin"] = theory.margin;
  json["margin_meaning"] = "largest error of the formula, relative to K, that still counts as no error";
  json["paper_max_relative_error"] = paper_theory_error;
  put(json, "unseen_text", theory.unseen);
  put(json, "by_head", theory.cells);
  return json;
}

}  // namespace gainlens::analyses
