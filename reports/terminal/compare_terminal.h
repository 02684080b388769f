#pragma once

#include "analyses/experiment_comparison.h"
#include "analyses/recommender_comparison.h"

#include <span>
#include <string>

namespace gainlens::reports {

/// Comparisons of recommender arms as text for a terminal: metrics with the paper's numbers below them, strata, pooled
/// data sets.
std::string print_comparisons(std::span<const analyses::ArmComparison> comparisons,
                              std::span<const analyses::PooledComparison> pooled);

/// Comparisons of the arms of experiments as text for a terminal: the decisions, and under them each pair of arms.
std::string print_comparisons(std::span<const analyses::ExperimentComparison> comparisons);

}  // namespace gainlens::reports
