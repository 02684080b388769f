#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gainlens::recommend {

/// What a model that is trained consists of: SASRec, with the Bayesian filter, or with one part of it as a control.
enum class Arm {
  plain,             ///< SASRec
  bft,               ///< with the filter: docs/bft.md
  plain_no_wo,       ///< SASRec without the output projection of attention, which the filter does not have
  plain_decay,       ///< SASRec with scores that fall with distance, as those of the filter
  plain_popularity,  ///< SASRec with the initial precision of the items in the scores, and no other part of the filter
  gate,              ///< the structure of the filter; the gain is a learned function of the stream, without precisions
  constant_k,        ///< likewise; the gain is a learned number for each dimension
};

/// What the sum of the residual stream takes of what attention gives: h + factor e.
enum class AttentionFactor {
  one,
  kalman_gain,  ///< K of the precisions
  gate,         ///< sigmoid(W norm(h) + b)
  constant,     ///< sigmoid(c)
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
};

/// In the order of the enumeration.
const std::vector<ArmParts>& all_arms();
const ArmParts& parts_of(Arm arm);
std::string_view name_of(Arm arm);
/// Of the arms that are trained, then popularity and markov: baselines without training, for scale.
const std::vector<std::string>& arm_names();
/// @returns  null if no arm that is trained has this name
const ArmParts* find_arm(std::string_view name);

}  // namespace gainlens::recommend
