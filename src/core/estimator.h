#pragma once

#include <array>
#include <string>
#include <string_view>

namespace gainlens {

/// How the variance V of an estimate e = sum p v is estimated; lambda_obs = 1/V. docs/estimators.md.
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

/// Whether V of the estimator has no prior that keeps it above 0.
constexpr bool has_no_floor(Estimator estimator) {
  return estimator == Estimator::reml_naive || estimator == Estimator::sandwich;
}

/// Least V, in values squared, whose lambda_obs is given if the estimator has no floor. Below it K at lambda = 1 is 1
/// to 12 digits, and lambda_obs follows from the rounding of the weights and values.
inline constexpr double min_variance = 1e-12;

/// An estimator with what it takes beside the weights and values of a query.
struct ChosenEstimator {
  Estimator name = Estimator::reml;
  double score_noise = 0;  ///< omega, standard deviation of a score: of delta_weight_free, else 0

  bool operator==(const ChosenEstimator&) const = default;
};

/// "sandwich", "delta_weight_free with score noise 0.1"
std::string words_of(const ChosenEstimator& estimator);

}  // namespace gainlens
