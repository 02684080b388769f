#pragma once

#include "analyses/recommender_comparison.h"

#include <span>
#include <string>

namespace gainlens::reports {

/// Comparisons of recommender arms as text for a terminal: metrics with the paper's numbers below them, strata, pooled
/// data sets.
std::string print_comparisons(std::span<const analyses::ArmComparison> comparisons,
                              std::span<const analyses::PooledComparison> pooled);

}  // namespace gainlens::reports
