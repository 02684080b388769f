#pragma once

#include <array>
#include <string_view>

namespace gainlens {

/// How the variance V of an estimate e = sum p v is estimated; lambda_obs = 1/V. docs/bft.md, "Estimators".
enum class Estimator {
  reml,               ///< the paper's: eq. (6) [eq:reml]
  reml_naive,         ///< without a prior: eq. (5) [eq:reml-naive]
  reml_conjugate,     ///< mean of sigma^2 under the conjugate prior that the paper describes
  sandwich,           ///< heteroskedasticity-consistent: eq. (13) [eq:sandwich-final]
  kish,               ///< unweighted variance of the visible values, divided by n_eff
  delta,              ///< first order in the noise of the tokens, through values and scores
  delta_weight_free,  ///< reml with a term for noise in the scores; needs no projection
};

inline constexpr std::array all_estimators = {
    Estimator::reml, Estimator::reml_naive, Estimator::reml_conjugate,   Estimator::sandwich,
    Estimator::kish, Estimator::delta,      Estimator::delta_weight_free};

/// "reml_naive"
std::string_view name_of(Estimator estimator);
/// @param where  begins the message
/// @throws InvalidArgument  no such estimator; names the nearest
Estimator parse_estimator(std::string_view name, std::string_view where);

/// An estimator with what it takes beside the weights and values of a query.
struct ChosenEstimator {
  Estimator name = Estimator::reml;
  double score_noise = 0;  ///< omega, standard deviation of a score: of delta_weight_free, else 0

  bool operator==(const ChosenEstimator&) const = default;
};

}  // namespace gainlens
