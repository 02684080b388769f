#pragma once

#include "analyses/estimator_truth.h"
#include "bft/estimators.h"
#include "core/random.h"

#include <array>
#include <vector>

namespace gainlens::analyses {

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

}  // namespace gainlens::analyses
