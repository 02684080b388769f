#include "analyses/simulated_query.h"

#include "core/check.h"

#include <boost/math/tools/toms748_solve.hpp>
#include <boost/random/normal_distribution.hpp>
#include <boost/random/student_t_distribution.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace gainlens::analyses {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double tail_freedom = 3;  // degrees of freedom of heavy_tails

/// The mean of the values. Not 0, so that no estimator is right by chance of the origin.
constexpr double mean_value = 0.5;

/// Random as the distributions of Boost want it. Unlike those of the standard library they give the same numbers
/// everywhere.
struct Engine {
  using result_type = std::uint64_t;
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }
  result_type operator()() const { return random.bits(); }
  Random& random;
};

template <typename Distribution>
std::vector<double> drawn(Distribution distribution, std::size_t count, Random& random) {
  const Engine engine{random};
  std::vector<double> numbers(count);
  for (double& number : numbers) number = distribution(engine);
  return numbers;
}

std::vector<double> normals(std::size_t count, Random& random) {
  return drawn(boost::random::normal_distribution<double>(), count, random);
}

/// softmax(sharpness scores); all weight on the largest for an infinite sharpness.
std::vector<double> softmax(const std::vector<double>& scores, double sharpness) {
  const auto largest = std::max_element(scores.begin(), scores.end());
  std::vector<double> weights(scores.size(), 0.0);
  if (sharpness == infinite) {
    weights[static_cast<std::size_t>(largest - scores.begin())] = 1;
    return weights;
  }
  double sum = 0;
  for (std::size_t key = 0; key < scores.size(); ++key)
    sum += weights[key] = std::exp(sharpness * (scores[key] - *largest));
  for (double& weight : weights) weight /= sum;
  return weights;
}

double log_n_eff(const std::vector<double>& scores, double largest, double sharpness) {
  double sum = 0, squares = 0;
  for (const double score : scores) {
    const double weight = std::exp(sharpness * (score - largest));
    sum += weight;
    squares += weight * weight;
  }
  return std::log(sum * sum / squares);
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// correlation a + sqrt(1 - correlation^2) b: has this correlation with a.
std::vector<double> correlated(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> mixed(a.size());
  const double rest = std::sqrt(1 - score_correlation * score_correlation);
  for (std::size_t i = 0; i < a.size(); ++i) mixed[i] = score_correlation * a[i] + rest * b[i];
  return mixed;
}

/// Adds noise to values and scores of the query. Its target is e without that noise.
void add_noise(SimulatedQuery& query, std::vector<double> scores, double sharpness, double deviation, Random& random) {
  query.target = dot(query.weights, query.values);
  const double value_noise = value_noise_share * deviation;
  const std::vector<double> along = normals(scores.size(), random);
  const std::vector<double> noise = correlated(along, normals(scores.size(), random));
  for (std::size_t key = 0; key < scores.size(); ++key) {
    query.values[key] += value_noise * along[key];
    if (sharpness != infinite) scores[key] += noisy_score_noise / sharpness * noise[key];
  }
  query.weights = softmax(scores, sharpness);
  query.score_noise = sharpness == infinite ? 0 : noisy_score_noise;
  query.token_precision.assign(scores.size(), 1 / (value_noise * value_noise));
  const double gradient = query.score_noise / value_noise;
  query.score_gradient = {gradient * score_correlation,
                          gradient * std::sqrt(1 - score_correlation * score_correlation)};
}

}  // namespace

double value_variance(TruthScenario scenario, double prior_variance) {
  if (scenario == TruthScenario::unit_variance) return 1;
  return scenario == TruthScenario::equal_values ? 0 : prior_variance;
}

double sharpness_for(const std::vector<double>& scores, double n_eff) {
  if (n_eff == 1) return infinite;
  const double largest = *std::max_element(scores.begin(), scores.end());
  const auto excess = [&](double sharpness) { return log_n_eff(scores, largest, sharpness) - std::log(n_eff); };
  double high = 1;
  while (excess(high) > 0) {
    high *= 2;
    ASSERT(high < 1e300, "no sharpness gives n_eff {}; two scores are equal", n_eff);
  }
  std::uintmax_t steps = 200;
  const auto [below, above] = boost::math::tools::toms748_solve(excess, high == 1 ? 0.0 : high / 2, high,
                                                                boost::math::tools::eps_tolerance<double>(45), steps);
  return 0.5 * (below + above);
}

SimulatedQuery simulate_query(TruthScenario scenario, double n_eff, double prior_variance, Random& random) {
  constexpr auto keys = static_cast<std::size_t>(truth_keys);
  const double variance = value_variance(scenario, prior_variance), deviation = std::sqrt(variance);
  const std::vector<double> standard =
      scenario == TruthScenario::heavy_tails
          ? drawn(boost::random::student_t_distribution<double>(tail_freedom), keys, random)
          : normals(keys, random);
  const double unit = scenario == TruthScenario::heavy_tails ? std::sqrt((tail_freedom - 2) / tail_freedom) : 1;
  std::vector<double> scores = normals(keys, random);
  if (scenario == TruthScenario::dependent) scores = correlated(standard, scores);
  const double sharpness = sharpness_for(scores, n_eff);

  SimulatedQuery query;
  query.weights = softmax(scores, sharpness);
  for (const double value : standard) query.values.push_back(mean_value + deviation * unit * value);
  query.target = mean_value;
  query.score_noise = 0;
  query.value_projection = {1, 0};
  query.score_gradient = {0, 0};
  query.token_precision.assign(keys, 1 / variance);
  if (scenario == TruthScenario::dependent && sharpness != infinite) {
    // All tokens have the same true part, so the whole score is noise.
    query.score_noise = sharpness;
    query.score_gradient = {sharpness / deviation * score_correlation,
                            sharpness / deviation * std::sqrt(1 - score_correlation * score_correlation)};
  }
  if (scenario == TruthScenario::noisy_tokens) add_noise(query, scores, sharpness, deviation, random);
  query.estimate = dot(query.weights, query.values);
  return query;
}

}  // namespace gainlens::analyses
