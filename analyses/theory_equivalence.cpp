#include "analyses/theory_equivalence.h"

#include "analyses/cells.h"
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

}  // namespace gainlens::analyses
