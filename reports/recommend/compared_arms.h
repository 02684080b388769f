#pragma once

#include "analyses/gain_decisions.h"
#include "analyses/recommender_comparison.h"
#include "reports/section.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace gainlens::reports {

/// What the comparisons of a report share.
struct SharedResults {
  std::vector<analyses::PooledComparison> pooled;
  std::vector<analyses::GainDecision> decisions;  ///< one row for each comparison and metric
};

/// Two compared arms, as the sections of a report see them.
struct ComparedArms {
  analyses::ArmComparison comparison;
  std::shared_ptr<const SharedResults> shared;
  std::size_t first_decision;  ///< place of its first row among the decisions
  std::string key;             ///< in summary.json; differs from those of the others
  std::string title;           ///< the same with names as the paper prints them
  /// Numbers of the styles (palette.h) of both arms. An arm has one in the whole report. They can exceed max_runs.
  std::size_t baseline_style, candidate_style;

  const std::string& label() const { return key; }
  /// [metric]
  std::span<const analyses::GainDecision> decisions() const {
    return {shared->decisions.data() + first_decision, comparison.metrics.size()};
  }
};
using Comparisons = std::span<const ComparedArms>;

/// @param comparisons  comparisons of equal titles are told apart by their split
/// @param arms         in the order of their styles; other arms follow as they come
std::vector<ComparedArms> compared_arms(std::span<const analyses::ArmComparison> comparisons,
                                        std::vector<analyses::PooledComparison> pooled,
                                        std::vector<std::string> arms = {});

/// The stem of a file of one comparison: "learning-curves", then "learning-curves-2".
inline std::string numbered_stem(const std::string& stem, std::size_t comparison) {
  return comparison == 0 ? stem : stem + "-" + std::to_string(comparison + 1);
}

/// The common name of the baselines; "the baseline" if they differ.
std::string baseline_of(Comparisons comparisons);
/// The comparisons on each split, in their order.
std::vector<std::vector<const ComparedArms*>> by_split(Comparisons comparisons);
/// "Rows called paper: ..." with the data sets, if there is such a row; otherwise empty.
std::string paper_clause(Comparisons comparisons);

extern const Section<ComparedArms> decisions_section, gains_section, learning_curves_section, strata_section,
    pooled_section, reading_section;
/// The changes of the decisions as a map that the page's script shows.
extern const Section<ComparedArms> compare_explorer_section;

/// Every section of a report of `gainlens compare`, in its order.
extern const std::vector<const Section<ComparedArms>*> compare_sections;

}  // namespace gainlens::reports
