#pragma once

#include "core/estimator.h"

#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace gainlens::bft {

using gainlens::all_estimators;
using gainlens::Estimator;
using gainlens::name_of;
using gainlens::parse_estimator;

/// What the estimators take as given. Variances are in the square of the unit of the values.
struct EstimatorOptions {
  double prior_strength = 1;             ///< nu, in observations; 0: no prior
  std::optional<double> prior_variance;  ///< sigma0^2; absent: 1/d, d the number of dimensions of the values
  std::optional<double> score_noise;     ///< omega, standard deviation of a score; delta_weight_free needs it
  /// Least |sum w| of sandwich, as a share of sum |w|. Weights of both signs (SiLU) can cancel. A sum below it is
  /// raised to it, keeps its sign, and is counted.
  double least_weight_share = 1e-6;
  double least_precision = 0;                                       ///< lambda_obs is raised to it
  double most_precision = std::numeric_limits<double>::infinity();  ///< lambda_obs is cut to it
};

/// @throws InvalidArgument  an option is out of its range, or the estimator needs one that is absent
void check(const EstimatorOptions& options, Estimator estimator);
/// Whether n_eff and S of a query are all of its weights and values that the estimator needs: reml, reml_naive and
/// reml_conjugate.
bool needs_moments_alone(Estimator estimator);
/// sigma0^2 of values of `dimensions` dimensions.
double prior_variance(const EstimatorOptions& options, std::size_t dimensions);

/// The keys that one query of one head sees. A key with weight 0 is visible: kish counts its value.
struct VisibleKeys {
  std::span<const double> weights;  ///< [key] need not sum to one; below 0 for sandwich alone
  std::span<const double> values;   ///< [key, dimension], row after row
  std::size_t dimensions;           ///< at least 1
};

/// What delta knows of tokens and projections. Token j is its true part plus noise N(0, I / token_precision_j).
struct TokenNoise {
  std::span<const double> score_gradient;    ///< [model] u = W_K^T q / sqrt(d): gradient of a score by its token
  std::span<const double> value_projection;  ///< [dimension, model] W_V
  std::span<const double> token_precision;   ///< [key] above 0; infinite: no noise
};

/// One query of one head. NaN marks what is not defined.
struct Observation {
  double n_eff;                    ///< (sum w)^2 / sum w^2
  std::vector<double> estimate;    ///< [dimension] e = sum w v / sum w; 0 without a weight above 0
  std::vector<double> residual;    ///< [dimension] S = sum p (v - e)^2, p = w / sum w
  std::vector<double> variance;    ///< [dimension] V
  std::vector<double> precision;   ///< [dimension] lambda_obs = 1/V within the bounds; infinite where V is 0
  bool weight_sum_raised = false;  ///< by least_weight_share
  std::size_t precisions_cut = 0;  ///< dimensions in which a bound changed lambda_obs
  std::size_t undefined = 0;       ///< dimensions in which V is NaN
};

/// Estimates the variance of one query in double, in two passes: the oracle of every faster form.
///
/// No visible key, or no weight other than 0: n_eff, S, V and lambda_obs are NaN. reml_naive is NaN at n_eff = 1, and
/// so are reml_conjugate and kish at n_eff = 1 or one visible key if there is no prior. These are 0/0, and no number
/// stands for them. `undefined` counts them.
/// @param noise  delta needs it, the others do not read it
/// @throws InvalidArgument  sizes do not fit, a number is not finite, a weight is negative (not for sandwich), delta
///     without `noise`, a token precision that is not above 0, options as check() says
Observation observe(Estimator estimator, const VisibleKeys& keys, const EstimatorOptions& options = {},
                    const TokenNoise* noise = nullptr);

// The formulas, of one query and one dimension. Names: S residual; n n_eff; nu prior strength; sigma0^2 prior variance.

/// (S + nu sigma0^2) / (n + nu). Source: the paper, eq. (6) [eq:reml].
double reml_variance(double n_eff, double residual, double prior_strength, double prior_variance);
/// S / (n - 1); NaN at n = 1. Source: eq. (5) [eq:reml-naive].
double reml_naive_variance(double n_eff, double residual);
/// (n S + nu sigma0^2) / ((n - 1 + nu) n); NaN where n - 1 + nu = 0. n S is the sum of squares of n equal weights with
/// n - 1 degrees of freedom; nu observations of sigma0^2 join it. Source: section 3.1, "Bayesian regularization".
double reml_conjugate_variance(double n_eff, double residual, double prior_strength, double prior_variance);
/// sum w^2 (v - e)^2 / (sum w)^2. Source: eq. (13) [eq:sandwich-final].
double sandwich_variance(double weighted_squares, double weight_sum);
/// s^2 / n with s^2 = (Q + nu sigma0^2) / (visible - 1 + nu), Q the sum over the visible values of (v - their mean)^2;
/// NaN where visible - 1 + nu = 0. Source: Kish (1965), Survey Sampling; Table 1 of the paper names it.
double kish_variance(double n_eff, double square_sum, double visible, double prior_strength, double prior_variance);
/// reml + omega^2 sum p^2 (v - e)^2. Good for omega up to about 0.3. Source: delta without W_V, with noise of the
/// scores that does not depend on that of the values.
double delta_weight_free_variance(double reml, double weighted_squares, double score_noise);

}  // namespace gainlens::bft
