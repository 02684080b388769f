#pragma once

#include "analyses/measured.h"

#include <vector>

namespace gainlens::analyses {

inline constexpr double prior_observations = 1;  ///< nu

/// Means of one context length over some queries, heads and chunks.
struct GainMeans {
  double n_eff;
  double residual;  ///< S, squared unit of the values
  double gain;      ///< K as measured at lambda = 1
};

/// lambda* = (n_eff + nu) / (S + nu sigma0^2). Source: bft.tex, Eq. reml.
double aggregated_precision(const GainMeans& means, double prior_variance);
/// The lambda at which K = lambda* / (lambda + lambda*); missing unless 0 < K < 1.
Measured fitted_prior_precision(const GainMeans& means, double prior_variance);
/// lambda* / (lambda + lambda*)
double predicted_gain(const GainMeans& means, double prior_variance, double prior_precision);

/// Errors relative to the measured K, over the lengths that are predicted.
struct GainErrors {
  double max_relative;
  double max_constant;  ///< of the prediction that K is the same at every length
  double mean_relative;
  double mean_constant;
  Measured skill() const;  ///< 1 - mean_relative / mean_constant
};

/// lambda comes from `fit` at the shortest length; `judged` are the means at the other lengths.
/// Missing where lambda is, where a measured K is not positive, or a value is not finite.
/// @param judged    at least one
/// @param constant  K at the shortest length of the text that is judged: K of another text would charge the constant
///                  for the difference between texts
Maybe<GainErrors> gain_errors(const GainMeans& fit, const std::vector<GainMeans>& judged, double constant,
                              double prior_variance);

}  // namespace gainlens::analyses
