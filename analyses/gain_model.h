#pragma once

#include "analyses/measured.h"
#include "runfile/request.h"

#include <string>
#include <vector>

namespace gainlens::analyses {

inline constexpr double prior_observations = 1;  ///< nu

/// sigma0^2 = 1 / head_dim, squared unit of the values.
double prior_variance(const runfile::Request& request);

/// Why no gain of this run can be predicted by lambda*, which is that of reml. Empty if its estimator is reml.
std::string other_estimator(const runfile::Request& request);

/// Means over some queries, heads and chunks of one context length.
struct GainMeans {
  double n_eff;
  double residual;  ///< S, squared unit of the values
  double gain;      ///< K as measured at lambda = 1
};

/// lambda* = (n_eff + nu) / (S + nu sigma0^2). Source: bft.tex, Eq. reml.
double aggregated_precision(const GainMeans& means, double prior_variance);
/// The lambda for which K = lambda* / (lambda + lambda*); missing unless 0 < K < 1.
Measured fitted_prior_precision(const GainMeans& means, double prior_variance);
/// lambda* / (lambda + lambda*)
double predicted_gain(const GainMeans& means, double prior_variance, double prior_precision);

/// Errors relative to the measured K, over the predicted lengths.
struct GainErrors {
  double max_relative;
  double max_constant;  ///< error of the constant: the prediction that K is the same at every length
  double mean_relative;
  double mean_constant;
  Measured skill() const;  ///< 1 - mean_relative / mean_constant
};

/// Missing if there is no lambda, if a measured K is not positive, or if a value is not finite.
/// @param fit       means at the shortest length, from which lambda comes
/// @param judged    means at the other lengths; at least one
/// @param constant  K at the shortest length of the same text as `judged`: with K of another text, the error of the
///                  constant would include the difference between the texts
Maybe<GainErrors> gain_errors(const GainMeans& fit, const std::vector<GainMeans>& judged, double constant,
                              double prior_variance);

}  // namespace gainlens::analyses
