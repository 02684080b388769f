#include "analyses/gain_theory.h"

#include "analyses/gain_model.h"
#include "analyses/statistics.h"

#include <algorithm>
#include <cmath>

namespace gainlens::analyses {
namespace {

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
