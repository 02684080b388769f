#pragma once

#include "bft/estimators.h"
#include "core/knobs.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gainlens::bft {

/// How precisions enter the attention weights.
enum class Kriging {
  scalar,         ///< the mean over the dimensions, as a bias of the scores: eq. (2) [eq:kriging]
  per_dimension,  ///< each dimension has its own weights, in proportion to the key's precision in it
};

/// How the precision passes the feed-forward layer. J is the diagonal of its Jacobian.
enum class Predict {
  jacobian,  ///< lambda'' = 1 / ((1 + J)^2 / lambda' + Q): eq. (9) [eq:process-noise]
  discount,  ///< lambda'' = gamma lambda' / (1 + J)^2, gamma given
  decay,     ///< likewise, gamma learned for each layer
  prior,     ///< it does not: each layer begins again at the tau of its item, with a tau_range of its own
};

enum class JacobianForm {
  low_rank,  ///< of the singular values of W2 * W1^T, computed once each epoch without a gradient
  exact,     ///< of the weights as they are, with a gradient
  none,      ///< J = 0
};

/// The precision tau of an item (or token) before the first layer.
enum class InitialPrecision {
  content,  ///< tau_range tau_base + softplus(MLP(embedding)): eq. (11) [eq:tau-content]
  table,    ///< 1 + softplus(p), p learned for each item: eq. (10) [eq:tau-init]
  count,    ///< tau_range tau_base, not learned
  em,       ///< one for each item, by expectation and maximisation after each epoch
};

/// What the training knows of the first steps.
enum class WarmUp {
  step,   ///< the plain layer, then the filter
  blend,  ///< the gain goes from 1 to K in equal steps, and the biases from 0
};

/// What a step of the warm-up is.
enum class WarmUpUnit { steps, epochs };

/// Where the gain acts, in a model with an output projection.
enum class GainPlace {
  before,  ///< h + W_O (K e)
  after,   ///< h + K (W_O e)
};

/// What has a rate of its own at which scores fall with distance.
enum class DecayOwner { layer, head };

/// The filter of a layer: everything about it that can be chosen. Formulas: docs/bft.md. Defaults: the paper's.
struct FilterOptions {
  Estimator estimator = Estimator::reml;
  double prior_strength = 1;  ///< nu
  double prior_variance = 0;  ///< sigma0^2; 0: 1/d, d the dimensions of a head
  double score_noise = 0;     ///< omega, for delta_weight_free
  Kriging kriging = Kriging::scalar;
  Predict predict = Predict::jacobian;
  JacobianForm jacobian = JacobianForm::low_rank;
  std::int64_t jacobian_rank = 16;
  bool norm_jacobian = false;       ///< J is that of the norm too; only with the exact form
  bool running_jacobian = true;     ///< evaluation takes the running average of (1 + J)^2
  double discount = 0.95;           ///< gamma
  double most_process_noise = 1;    ///< Q_max; 0: Q = 0
  double process_noise_start = -9;  ///< Q = softplus(this) Q_max before training
  InitialPrecision initial_precision = InitialPrecision::content;
  double initial_gain = 0.9;         ///< K0, from which tau_range follows
  bool initial_gain_of_data = true;  ///< tau_range from the first batch; else from 2 d
  double initial_range = 0;          ///< tau_range before training; 0: it follows from K0
  bool recency_decay = true;         ///< |t - j| log rho is added to the scores, rho learned
  DecayOwner decay_owner = DecayOwner::layer;
  double initial_decay = 0.99;     ///< rho before training
  bool output_projection = false;  ///< for models that have a W_O; the paper's layer has none
  GainPlace gain_place = GainPlace::before;
  double least_precision = 1e-3;  ///< lambda_min
  double most_precision = 100;    ///< lambda_max, of lambda_obs, lambda' and lambda''
  std::int64_t warm_up = 50;      ///< in `warm_up_unit`
  WarmUpUnit warm_up_unit = WarmUpUnit::steps;
  WarmUp warm_up_form = WarmUp::step;

  /// The options of observation_variance().
  EstimatorOptions estimator_options() const;
  bool operator==(const FilterOptions&) const = default;
};

/// The options with their keys.
std::span<const Knob<FilterOptions>> filter_knobs();

/// Why the option with this key changes nothing beside the others: "'jacobian' is exact". Empty: it acts.
std::string why_idle(const FilterOptions& options, std::string_view key);

/// @throws InvalidArgument  options that contradict each other
void check(const FilterOptions& options, const std::string& where);

}  // namespace gainlens::bft
