#include "analyses/crossed_estimate.h"

#include "core/check.h"

#include <boost/math/distributions/students_t.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

namespace gainlens::analyses {
namespace {

double square(double x) {
  return x * x;
}

/// Variance of the mean over seeds.
double variance_over_seeds(std::span<const double> by_seed) {
  return square(mean_estimate(by_seed).error);
}

struct UnitVariances {
  double units = 0;  // of the means over seeds
  double noise = 0;  // of what is left in each seed
};

UnitVariances unit_variances(std::span<const double> influence, std::size_t seeds) {
  const std::size_t units = influence.size() / seeds;
  std::vector<double> means(units, 0.0);
  for (std::size_t i = 0; i < influence.size(); ++i) means[i % units] += influence[i] / static_cast<double>(seeds);
  UnitVariances variances;
  for (const double value : means) variances.units += square(value);
  for (std::size_t seed = 0; seed < seeds; ++seed) {
    for (std::size_t unit = 0; unit < units; ++unit)
      variances.noise += square(influence[seed * units + unit] - means[unit]);
  }
  variances.noise /= static_cast<double>(seeds) * static_cast<double>(seeds - 1);
  return variances;
}

}  // namespace

Maybe<CrossedEstimate> crossed_estimate(double value, std::span<const double> by_seed,
                                        std::span<const double> influence, double unit_degrees_of_freedom) {
  using Result = Maybe<CrossedEstimate>;
  if (by_seed.size() < 2) {
    return Result::none(
        fmt::format("an error over seeds needs at least 2 seeds; there {}", by_seed.size() == 1 ? "is 1" : "are 0"));
  }
  if (!(unit_degrees_of_freedom >= 1)) return Result::none("an error over users needs at least 2 users in each group");
  ASSERT(influence.size() % by_seed.size() == 0, "{} influences in {} runs", influence.size(), by_seed.size());
  const double seed_variance = variance_over_seeds(by_seed);
  const auto [unit_variance, noise_variance] = unit_variances(influence, by_seed.size());
  const double variance = std::max({seed_variance + unit_variance - noise_variance, seed_variance, unit_variance});
  if (!(variance > 0)) return Result::none("the difference is the same in every run and for every user");
  const auto seed_degrees = static_cast<double>(by_seed.size() - 1);
  const double degrees =
      square(variance) / (square(seed_variance) / seed_degrees + square(unit_variance) / unit_degrees_of_freedom +
                          square(noise_variance) / (seed_degrees * unit_degrees_of_freedom));
  if (!(degrees >= 1))  // no interval of a size that tells anything; its quantile can exceed every number
    return Result::none(fmt::format("the error has {:.2g} degrees of freedom, and 1 is needed: more seeds", degrees));
  const Estimate estimate{value, std::sqrt(variance), degrees};
  const double t = std::abs(value) / estimate.error;
  const double p = 2 * boost::math::cdf(boost::math::complement(boost::math::students_t(degrees), t));
  return CrossedEstimate{value,
                         by_seed.size(),
                         influence.size() / by_seed.size(),
                         seed_variance,
                         unit_variance,
                         noise_variance,
                         estimate.error,
                         degrees,
                         student_interval(estimate),
                         p};
}

OrderedJson to_json(const CrossedEstimate& estimate) {
  OrderedJson json;
  json["value"] = estimate.value;
  json["seeds"] = estimate.seeds;
  json["units"] = estimate.units;
  json["seed_variance"] = estimate.seed_variance;
  json["unit_variance"] = estimate.unit_variance;
  json["noise_variance"] = estimate.noise_variance;
  json["standard_error"] = estimate.error;
  json["degrees_of_freedom"] = estimate.degrees_of_freedom;
  put(json, "interval_95", estimate.interval);
  json["p"] = estimate.p;
  return json;
}

void put(OrderedJson& object, std::string_view name, const Maybe<CrossedEstimate>& estimate) {
  if (!estimate) return put(object, name, Measured::none(estimate.reason()));
  object[std::string(name)] = to_json(*estimate);
}

}  // namespace gainlens::analyses
