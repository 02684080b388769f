#include "bft/estimators.h"

#include "core/check.h"

#include <algorithm>
#include <cmath>

namespace gainlens::bft {
namespace {

constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

void check_range(double value, double least, std::string_view name) {
  CHECK(std::isfinite(value) && value >= least, "estimator: {} is {}; must be finite and at least {}", name, value,
        least);
}

void check_finite(std::span<const double> values, std::string_view name) {
  for (std::size_t i = 0; i < values.size(); ++i)
    CHECK(std::isfinite(values[i]), "observe: {} {} is {}; must be finite", name, i, values[i]);
}

void check_noise(const VisibleKeys& keys, const TokenNoise* noise) {
  CHECK(noise != nullptr, "observe: delta without tokens and projections; give them, or choose delta_weight_free");
  const std::size_t model = noise->score_gradient.size();
  CHECK(noise->value_projection.size() == keys.dimensions * model,
        "observe: {} numbers of W_V for {} dimensions of {} model dimensions", noise->value_projection.size(),
        keys.dimensions, model);
  CHECK(noise->token_precision.size() == keys.weights.size(), "observe: {} token precisions for {} keys",
        noise->token_precision.size(), keys.weights.size());
  check_finite(noise->score_gradient, "number of the score's gradient");
  check_finite(noise->value_projection, "number of W_V");
  for (std::size_t key = 0; key < noise->token_precision.size(); ++key)
    CHECK(noise->token_precision[key] > 0, "observe: token precision {} at key {}; must be above 0",
          noise->token_precision[key], key);
}

void check_keys(Estimator estimator, const VisibleKeys& keys) {
  CHECK(keys.dimensions >= 1, "observe: values of {} dimensions; need at least 1", keys.dimensions);
  CHECK(keys.values.size() == keys.weights.size() * keys.dimensions,
        "observe: {} numbers of values for {} keys of {} dimensions", keys.values.size(), keys.weights.size(),
        keys.dimensions);
  check_finite(keys.weights, "weight");
  check_finite(keys.values, "number of the values");
  if (estimator == Estimator::sandwich) return;
  for (std::size_t key = 0; key < keys.weights.size(); ++key)
    CHECK(keys.weights[key] >= 0, "observe: weight {} at key {}; must not be negative for {}", keys.weights[key], key,
          name_of(estimator));
}

/// Normalised weights, and what was done to their sum.
struct Shares {
  std::vector<double> p;
  double n_eff;
  bool raised;
};

Shares shares_of(std::span<const double> weights, double min_share) {
  double sum = 0, size = 0, squares = 0;
  for (const double weight : weights) {
    sum += weight;
    size += std::abs(weight);
    squares += weight * weight;
  }
  if (size == 0) return {{}, undefined, false};
  const bool raised = std::abs(sum) < min_share * size;
  if (raised) sum = std::copysign(min_share * size, sum);
  Shares shares{{weights.begin(), weights.end()}, sum * sum / squares, raised};
  const bool signless = *std::min_element(weights.begin(), weights.end()) >= 0;
  if (signless) shares.n_eff = std::max(shares.n_eff, 1.0);  // below it by rounding alone
  for (double& p : shares.p) p /= sum;
  return shares;
}

/// Values of one dimension and what the formulas need of them.
class Dimension {
 public:
  Dimension(const VisibleKeys& keys, const std::vector<double>& p, std::size_t index)
      : keys_(keys), p_(p), index_(index) {
    for (std::size_t key = 0; key < p_.size(); ++key) estimate += p_[key] * value(key);
    for (std::size_t key = 0; key < p_.size(); ++key) {
      const double square = (value(key) - estimate) * (value(key) - estimate);
      residual += p_[key] * square;
      weighted_squares += p_[key] * p_[key] * square;
    }
  }

  double value(std::size_t key) const { return keys_.values[key * keys_.dimensions + index_]; }

  /// sum over the visible values of (v - their mean)^2.
  double square_sum() const {
    double mean = 0, sum = 0;
    for (std::size_t key = 0; key < p_.size(); ++key) mean += value(key);
    mean /= static_cast<double>(p_.size());
    for (std::size_t key = 0; key < p_.size(); ++key) sum += (value(key) - mean) * (value(key) - mean);
    return sum;
  }

  /// sum_j p_j^2 / lb_j |w + (v_j - e) u|^2: the squared length of the gradient of e by token j, times its variance.
  double delta_variance(const TokenNoise& noise) const {
    const auto w = noise.value_projection.subspan(index_ * noise.score_gradient.size(), noise.score_gradient.size());
    double variance = 0;
    for (std::size_t key = 0; key < p_.size(); ++key) {
      double square = 0;
      for (std::size_t m = 0; m < w.size(); ++m) {
        const double part = w[m] + (value(key) - estimate) * noise.score_gradient[m];
        square += part * part;
      }
      variance += p_[key] * p_[key] / noise.token_precision[key] * square;
    }
    return variance;
  }

  double estimate = 0;
  double residual = 0;          ///< sum p (v - e)^2
  double weighted_squares = 0;  ///< sum p^2 (v - e)^2

 private:
  const VisibleKeys& keys_;
  const std::vector<double>& p_;
  std::size_t index_;
};

double variance_of(Estimator estimator, const Dimension& dimension, const VisibleKeys& keys, double n_eff,
                   const EstimatorOptions& options, const TokenNoise* noise) {
  const double nu = options.prior_strength, prior = prior_variance(options, keys.dimensions);
  switch (estimator) {
    case Estimator::reml:
      return reml_variance(n_eff, dimension.residual, nu, prior);
    case Estimator::reml_naive:
      return reml_naive_variance(n_eff, dimension.residual);
    case Estimator::reml_conjugate:
      return reml_conjugate_variance(n_eff, dimension.residual, nu, prior);
    case Estimator::sandwich:
      return sandwich_variance(dimension.weighted_squares, 1);  // of weights that are divided by their sum
    case Estimator::kish:
      return kish_variance(n_eff, dimension.square_sum(), static_cast<double>(keys.weights.size()), nu, prior);
    case Estimator::delta:
      return dimension.delta_variance(*noise);
    case Estimator::delta_weight_free:
      return delta_weight_free_variance(reml_variance(n_eff, dimension.residual, nu, prior), dimension.weighted_squares,
                                        *options.score_noise);
  }
  throw_internal_error(__FILE__, __LINE__, "an estimator without a formula");
}

}  // namespace

void check(const EstimatorOptions& options, Estimator estimator) {
  check_range(options.prior_strength, 0, "the prior's strength nu");
  if (options.prior_variance) check_range(*options.prior_variance, 0, "the prior's variance sigma0^2");
  if (options.score_noise) check_range(*options.score_noise, 0, "the score noise omega");
  check_range(options.least_weight_share, 0, "the least share of the sum of weights");
  check_range(options.least_precision, 0, "the least precision");
  CHECK(options.most_precision >= options.least_precision,
        "estimator: the largest precision is {}; must be at least the smallest, {}", options.most_precision,
        options.least_precision);
  CHECK(estimator != Estimator::delta_weight_free || options.score_noise,
        "estimator: delta_weight_free without the score noise omega; give it, as it cannot be seen in one query");
}

bool needs_moments_alone(Estimator estimator) {
  return estimator == Estimator::reml || estimator == Estimator::reml_naive || estimator == Estimator::reml_conjugate;
}

double prior_variance(const EstimatorOptions& options, std::size_t dimensions) {
  return options.prior_variance.value_or(1 / static_cast<double>(dimensions));
}

Observation observe(Estimator estimator, const VisibleKeys& keys, const EstimatorOptions& options,
                    const TokenNoise* noise) {
  check(options, estimator);
  check_keys(estimator, keys);
  if (estimator == Estimator::delta) check_noise(keys, noise);

  const std::size_t d = keys.dimensions;
  Observation observation;
  const Shares shares = shares_of(keys.weights, estimator == Estimator::sandwich ? options.least_weight_share : 0);
  observation.n_eff = shares.n_eff;
  observation.weight_sum_raised = shares.raised;
  if (shares.p.empty()) {
    observation.estimate.assign(d, 0.0);
    observation.residual = observation.variance = observation.precision = std::vector<double>(d, undefined);
    observation.undefined = d;
    return observation;
  }
  for (std::size_t i = 0; i < d; ++i) {
    const Dimension dimension(keys, shares.p, i);
    const double variance = variance_of(estimator, dimension, keys, shares.n_eff, options, noise);
    observation.estimate.push_back(dimension.estimate);
    observation.residual.push_back(dimension.residual);
    observation.variance.push_back(variance);
    observation.undefined += std::isnan(variance) ? 1 : 0;
    const double precision = 1 / variance;
    const double bounded =
        std::isnan(precision) ? undefined : std::clamp(precision, options.least_precision, options.most_precision);
    observation.precisions_cut += bounded != precision && !std::isnan(precision) ? 1 : 0;
    observation.precision.push_back(bounded);
  }
  return observation;
}

double reml_variance(double n_eff, double residual, double prior_strength, double prior_variance) {
  return (residual + prior_strength * prior_variance) / (n_eff + prior_strength);
}

double reml_naive_variance(double n_eff, double residual) {
  return n_eff > 1 ? residual / (n_eff - 1) : undefined;
}

double reml_conjugate_variance(double n_eff, double residual, double prior_strength, double prior_variance) {
  const double degrees = n_eff - 1 + prior_strength;
  return degrees > 0 ? (n_eff * residual + prior_strength * prior_variance) / (degrees * n_eff) : undefined;
}

double sandwich_variance(double weighted_squares, double weight_sum) {
  return weighted_squares / (weight_sum * weight_sum);
}

double kish_variance(double n_eff, double square_sum, double visible, double prior_strength, double prior_variance) {
  const double degrees = visible - 1 + prior_strength;
  return degrees > 0 ? (square_sum + prior_strength * prior_variance) / degrees / n_eff : undefined;
}

double delta_weight_free_variance(double reml, double weighted_squares, double score_noise) {
  return reml + score_noise * score_noise * weighted_squares;
}

}  // namespace gainlens::bft
