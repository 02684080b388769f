#pragma once

#include "analyses/experiment_comparison.h"

#include <span>
#include <string>

namespace gainlens::reports {

/// Comparisons of the arms of experiments as text for a terminal: the decisions, and under them each pair of arms.
std::string print_comparisons(std::span<const analyses::ExperimentComparison> comparisons);

}  // namespace gainlens::reports
