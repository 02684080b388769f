#pragma once

#include "analyses/measured.h"
#include "bft/estimators.h"
#include "core/json.h"
#include "core/random.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace gainlens::analyses {

/// Mean and variance of numbers that come one at a time or in blocks, by the updates of Welford (1962) and of Chan,
/// Golub and LeVeque (1979). A sum of squares would lose the spread of numbers that hardly vary.
struct RunningSpread {
  void add(double x) {
    ++count;
    const double before = x - mean;
    mean += before / static_cast<double>(count);
    squares += before * (x - mean);
  }
  void add(const RunningSpread& other) {
    if (other.count == 0) return;
    const double between = other.mean - mean;
    const double share = static_cast<double>(other.count) / static_cast<double>(count + other.count);
    squares += other.squares + between * between * share * static_cast<double>(count);
    mean += between * share;
    count += other.count;
  }
  /// Standard deviation with ddof 1; 0 of a single number.
  double deviation() const { return std::sqrt(squares / std::max(static_cast<double>(count) - 1, 1.0)); }
  /// Standard error of the mean of independent numbers, at least one.
  double error() const { return deviation() / std::sqrt(static_cast<double>(count)); }

  std::int64_t count = 0;
  double mean = 0;     ///< of the numbers; 0 without any
  double squares = 0;  ///< sum of (x - mean)^2
};

/// How weights and values of one query arise in the simulation. docs/estimators.md, "What is simulated".
enum class TruthScenario {
  independent,    ///< normal values of variance sigma0^2, which the prior assumes; weights drawn apart from them
  unit_variance,  ///< the same with variance 1: that of W_V h under Xavier initialisation, for h of unit variance
  dependent,      ///< the score of a key has correlation 0.5 with its value
  heavy_tails,    ///< Student t values with 3 degrees of freedom and variance sigma0^2
  noisy_tokens,   ///< fixed values and scores, seen with noise
  equal_values,   ///< all values are equal
};

inline constexpr std::array truth_scenarios = {TruthScenario::independent,  TruthScenario::unit_variance,
                                               TruthScenario::dependent,    TruthScenario::heavy_tails,
                                               TruthScenario::noisy_tokens, TruthScenario::equal_values};

/// "unit_variance"
std::string_view name_of(TruthScenario scenario);
/// One sentence: what is random.
std::string_view description_of(TruthScenario scenario);
/// What e estimates there, and what the true variance is the variance of.
std::string_view target_of(TruthScenario scenario);

inline constexpr std::int64_t truth_keys = 256;   ///< keys that the query sees
inline constexpr double value_noise_share = 0.3;  ///< noisy_tokens: noise of a value, in deviations of the values
inline constexpr double noisy_score_noise = 0.3;  ///< noisy_tokens: omega, deviation of the noise of a score
inline constexpr double score_correlation = 0.5;  ///< dependent: of score and value; noisy_tokens: of their noises
inline constexpr double normal_interval = 1.96;   ///< half width of the nominal 95% interval, in sqrt(V)
inline constexpr double bias_margin = 0.1;        ///< "right on average": mean V within 10% of the true variance
inline constexpr double coverage_margin = 0.02;   ///< "holds its level": coverage from 93% to 97%

/// Weights, values and target of one query, in one dimension of the values, as `estimator_truth` draws them.
struct SimulatedQuery {
  std::vector<double> weights;  ///< [key] sum to one, n_eff as asked but for the noise of noisy_tokens
  std::vector<double> values;   ///< [key]
  double estimate;              ///< e = sum p v
  double target;                ///< of e; for `dependent` the mean of the values, as E e is not known beforehand
  double score_noise;           ///< omega, standard deviation of the part of a score that is noise
  // What delta is given: two model dimensions, one along W_V and one across it.
  std::array<double, 2> score_gradient;
  std::array<double, 2> value_projection;
  std::vector<double> token_precision;  ///< [key]
};

/// Variance of the values in a scenario, where that of the prior is `prior_variance`.
double value_variance(TruthScenario scenario, double prior_variance);

/// Draws one query.
SimulatedQuery simulate_query(TruthScenario scenario, double n_eff, double prior_variance, Random& random);

/// The factor b at which softmax(b scores) has the given n_eff; infinite for n_eff = 1.
/// @param scores  all different
/// @param n_eff   from 1 to below the number of scores
double sharpness_for(const std::vector<double>& scores, double n_eff);

struct TruthOptions {
  std::int64_t draws = 5000;                                  ///< of each scenario and n_eff
  std::int64_t dimensions = 64;                               ///< d, which sets sigma0^2 = 1/d
  std::vector<double> n_eff = {1, 2, 3, 5, 10, 20, 50, 100};  ///< rising, from 1 to 200
  std::uint64_t seed = 0;
  std::size_t threads = 1;  ///< changes no number
};

/// @throws InvalidArgument  fewer than 100 draws or more than 10 million, dimensions outside 1 to 65536, an n_eff
///     outside 1 to 200 or not above the one before it, no n_eff, no thread
void check(const TruthOptions& options);

/// How one estimator did in one scenario at one n_eff. Draws in which V is not defined are counted and left out.
struct EstimatorAccuracy {
  bft::Estimator estimator;
  std::int64_t undefined;   ///< draws without V
  Measured mean_variance;   ///< mean of V over draws, in the square of the values' unit
  Measured bias;            ///< mean of V / true variance - 1; missing where the true variance is 0
  Measured bias_error;      ///< Monte-Carlo standard error of the bias, as if the true variance were known exactly
  Measured spread;          ///< standard deviation of V over draws / true variance
  Measured coverage;        ///< share of draws with |e - target| <= 1.96 sqrt(V)
  Measured coverage_error;  ///< Monte-Carlo standard error of the coverage
};

/// One scenario at one n_eff.
struct TruthCell {
  TruthScenario scenario;
  double n_eff;
  double true_variance;  ///< E (e - target)^2
  double truth_error;    ///< Monte-Carlo standard error of it; 0 where it is known exactly
  /// In deviations of the values. dependent: from the mean of the values to E e, the target. noisy_tokens: from the
  /// target to E e, which is part of the true variance. Else 0.
  double shift;
  std::vector<EstimatorAccuracy> estimators;  ///< in the order of bft::all_estimators
};

/// At which n_eff of the grid an estimator can be trusted in a scenario.
struct TrustedAt {
  TruthScenario scenario;
  bft::Estimator estimator;
  std::vector<double> unbiased;  ///< |bias| <= bias_margin
  std::vector<double> covering;  ///< |coverage - 0.95| <= coverage_margin
};

struct EstimatorTruth {
  TruthOptions options;
  double prior_variance;         ///< sigma0^2 = 1/d
  std::vector<TruthCell> cells;  ///< scenario by scenario, n_eff rising
  std::vector<TrustedAt> trust;  ///< scenario by scenario, estimator by estimator; without equal_values

  const TruthCell& cell(TruthScenario scenario, std::size_t n_eff_index) const;
  const TrustedAt& trusted(TruthScenario scenario, bft::Estimator estimator) const;
};

/// Compares every estimator with the true variance of e, by simulation of single queries and one dimension.
/// The numbers depend on the options, but not on the number of threads.
/// @param on_cell  called after each scenario and n_eff
/// @throws InvalidArgument  see check()
EstimatorTruth estimator_truth(const TruthOptions& options, const std::function<void(const TruthCell&)>& on_cell = {});

OrderedJson to_json(const EstimatorTruth& truth);

}  // namespace gainlens::analyses
