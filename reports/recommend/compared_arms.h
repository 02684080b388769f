#pragma once

#include "analyses/recommender_comparison.h"

#include <span>
#include <string>
#include <vector>

namespace gainlens::reports {

/// Two compared arms, as the sections of a report see them.
struct ComparedArms {
  analyses::ArmComparison comparison;
  const std::vector<analyses::PooledComparison>* pooled;  ///< of the whole report
  std::string title;                                      ///< differs from those of the others

  const std::string& label() const { return title; }
};
using Comparisons = std::span<const ComparedArms>;

/// The stem of a file of one comparison: "learning-curves", then "learning-curves-2".
inline std::string numbered_stem(const std::string& stem, std::size_t comparison) {
  return comparison == 0 ? stem : stem + "-" + std::to_string(comparison + 1);
}

}  // namespace gainlens::reports
