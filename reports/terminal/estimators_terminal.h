#pragma once

#include "analyses/estimator_truth.h"

#include <string>

namespace gainlens::reports {

/// The result as text tables for a terminal, ended by a line break. For programs: analyses::to_json().
std::string print_estimators(const analyses::EstimatorTruth& truth);

}  // namespace gainlens::reports
