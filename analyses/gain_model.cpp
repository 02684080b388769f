#include "analyses/gain_model.h"

#include "core/check.h"

#include <algorithm>
#include <cmath>

namespace gainlens::analyses {
namespace {

bool finite(const GainMeans& means) {
  return std::isfinite(means.n_eff) && std::isfinite(means.residual) && std::isfinite(means.gain);
}

}  // namespace

double prior_variance(const runfile::Request& request) {
  return 1.0 / static_cast<double>(request.head_dim);
}

std::string other_estimator(const runfile::Request& request) {
  if (request.estimator.name == Estimator::reml) return {};
  return fmt::format("K of this run is estimated by {}; the gain theory holds for reml",
                     name_of(request.estimator.name));
}

double aggregated_precision(const GainMeans& means, double prior_variance) {
  return (means.n_eff + prior_observations) / (means.residual + prior_observations * prior_variance);
}

Measured fitted_prior_precision(const GainMeans& means, double prior_variance) {
  if (!(means.gain > 0 && means.gain < 1)) {
    return Measured::none(fmt::format("K at the shortest length is {}; a lambda needs 0 < K < 1", means.gain));
  }
  return aggregated_precision(means, prior_variance) * (1 - means.gain) / means.gain;
}

double predicted_gain(const GainMeans& means, double prior_variance, double prior_precision) {
  const double precision = aggregated_precision(means, prior_variance);
  return precision / (prior_precision + precision);
}

Measured GainErrors::skill() const {
  if (!(mean_constant > 0)) return Measured::none("K does not change with length, so the constant has no error");
  return 1 - mean_relative / mean_constant;
}

Maybe<GainErrors> gain_errors(const GainMeans& fit, const std::vector<GainMeans>& judged, double constant,
                              double prior_variance) {
  ASSERT(!judged.empty(), "a prediction of no length");
  if (!finite(fit) || !std::isfinite(constant))
    return Maybe<GainErrors>::none("no finite K, n_eff and S at the shortest length");
  const Measured lambda = fitted_prior_precision(fit, prior_variance);
  if (!lambda) return Maybe<GainErrors>::none(lambda.reason());
  GainErrors errors{0, 0, 0, 0};
  const auto lengths = static_cast<double>(judged.size());
  for (const GainMeans& means : judged) {
    if (!finite(means)) return Maybe<GainErrors>::none("no finite K, n_eff and S at one of the lengths");
    if (!(means.gain > 0)) return Maybe<GainErrors>::none("K is 0 at one of the lengths; a relative error needs K > 0");
    const double relative = std::abs(predicted_gain(means, prior_variance, *lambda) - means.gain) / means.gain;
    const double unchanged = std::abs(constant - means.gain) / means.gain;
    errors.max_relative = std::max(errors.max_relative, relative);
    errors.max_constant = std::max(errors.max_constant, unchanged);
    errors.mean_relative += relative / lengths;
    errors.mean_constant += unchanged / lengths;
  }
  return errors;
}

}  // namespace gainlens::analyses
