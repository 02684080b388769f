#pragma once

#include "analyses/gain_decisions.h"
#include "analyses/recommender_comparison.h"
#include "core/json.h"

#include <cstddef>
#include <string>
#include <vector>

namespace gainlens::analyses {

/// Two arms compared under one condition of the data: at a density, at a share of noise.
struct ConditionGain {
  double condition;
  ArmComparison comparison;
  std::vector<GainDecision> decisions;  ///< [metric]; Holm's p counts the rows of all conditions and candidates
};

/// A candidate against its baseline under several conditions.
struct GainByCondition {
  std::string baseline, candidate;    ///< names of the arms
  std::vector<ConditionGain> points;  ///< by rising condition
};

/// One entry for each candidate, in the order in which they first come. The points of a candidate share their users if
/// the conditions were made from one data set, so their errors are not independent: nothing here tests a trend.
/// @param gains  with or without decisions, which are made anew
/// @throws InvalidArgument  a condition that is no finite number; a candidate twice under one condition; candidates
/// that
///     are compared with different baselines
std::vector<GainByCondition> gains_by_condition(std::vector<ConditionGain> gains);

/// {"baseline", "candidate", "points": [{"condition", "data_set", "seeds", "users", metric: {...}}]}
OrderedJson to_json(const GainByCondition& gains);

}  // namespace gainlens::analyses
