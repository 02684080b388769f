#pragma once

#include "bft/filter_options.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::bft {

/// What a model that is trained consists of: its backbone, with the Bayesian filter, or with one part of it as a
/// control.
enum class Arm {
  plain,             ///< the backbone
  bft,               ///< with the filter: docs/bft.md
  plain_no_wo,       ///< without the output projection of attention, which the filter does not have
  plain_decay,       ///< with scores that fall with distance, as those of the filter
  plain_popularity,  ///< with the initial precision of the items in the scores, and no other part of the filter
  gate,              ///< the structure of the filter; the gain is a learned function of the stream, without precisions
  constant_k,        ///< likewise; the gain is a learned number for each dimension
  textbook,          ///< the filter with the update of a Kalman filter, h + K (e - h)
  least_error,       ///< the filter with the gain that is best for its own update, h + K e
  ffn,               ///< the backbone with the MLP that its filter needs; for a backbone that has none
};

/// What the sum of the residual stream takes of what attention gives: h + factor e.
enum class AttentionFactor {
  one,
  kalman_gain,  ///< K of the precisions
  gate,         ///< sigmoid(W norm(h) + b)
  constant,     ///< sigmoid(c)
};

/// How the stream takes in what attention found. Source of the last two: docs/bft.md, "Training".
enum class StreamUpdate {
  sum,          ///< h + factor e
  correction,   ///< h + factor (e - h)
  least_error,  ///< h + factor e, where the factor counts h as an error of e: see least_error_precision()
};

/// The parts of an arm, from which all else follows.
struct ArmParts {
  Arm arm;
  std::string_view name;
  std::string_view help;
  bool output_projection = true;
  bool precision_bias = false;  ///< the log precision of a key is added to its scores
  bool recency_decay = false;   ///< scores fall with distance
  AttentionFactor factor = AttentionFactor::one;
  StreamUpdate update = StreamUpdate::sum;

  /// Whether the arm has a part of the filter, so that options of the filter act in it.
  bool has_filter_part() const { return precision_bias || recency_decay || factor != AttentionFactor::one; }
};

/// The arms in the order of the enumeration.
const std::vector<ArmParts>& all_arms();
const ArmParts& parts_of(Arm arm);
std::string_view name_of(Arm arm);
/// @returns  null if no arm has this name
const ArmParts* find_arm(std::string_view name);

/// The filter of a model: an arm with the options that its parts read, and what follows from both.
struct Filter {
  Arm arm = Arm::plain;
  FilterOptions options = {};

  const ArmParts& parts() const { return parts_of(arm); }
  /// Whether a precision follows each position through the layers.
  bool has_gain() const { return parts().factor == AttentionFactor::kalman_gain; }
  /// Whether scores fall with distance. `plain-decay` always has it: it is its part.
  bool has_recency_decay() const { return parts().recency_decay && (options.recency_decay || arm == Arm::plain_decay); }
  /// Whether positions have a precision before the first layer.
  bool has_initial_precision() const { return parts().precision_bias; }
  /// Whether something is added to the scores.
  bool has_biased_scores() const { return has_initial_precision() || has_recency_decay(); }
  bool has_output_projection() const {
    return parts().output_projection || (parts().factor != AttentionFactor::one && options.output_projection);
  }
  /// Whether the gain acts on what W_O gives, in the stream; else on what the heads found.
  bool gains_in_stream() const {
    return parts().factor != AttentionFactor::one && has_output_projection() && options.gain_place == GainPlace::after;
  }
  /// Whether each head has one weight for all dimensions of a key's value, and the moments of these weights (n_eff and
  /// S) give the precision of what it observes. Else the weights themselves are needed, and they cannot be replaced.
  bool gains_from_moments() const {
    return options.kriging == Kriging::scalar && needs_moments_alone(options.estimator);
  }
  /// Whether each layer begins at the tau of its items, and no precision goes from layer to layer.
  bool begins_anew() const { return has_gain() && options.predict == Predict::prior; }
  bool has_jacobian() const { return has_gain() && !begins_anew() && options.jacobian != JacobianForm::none; }
  /// Whether evaluation takes the mean stretch of the training, and training that of its own pass.
  bool has_running_jacobian() const { return has_jacobian() && options.running_jacobian; }
  bool operator==(const Filter&) const = default;
};

/// Why the option with this key changes nothing in a model of this arm, beside the other options: "arm plain does not
/// read it", "'layers' is 1, ..." or the reason of why_idle() of the options. Empty: it acts.
/// @param layers  of the model: a precision is predicted after every layer but the last
std::string why_idle(const Filter& filter, std::string_view key, std::int64_t layers);

}  // namespace gainlens::bft
