#pragma once

#include "analyses/recommender_results.h"
#include "core/json.h"
#include "reports/recommend/compared_arms.h"
#include "reports/section.h"

#include <span>
#include <string>

namespace gainlens::reports {

/// A recommender run, as the sections of its report see it.
struct TrainedRun {
  std::string name;  ///< for readers
  analyses::RecommenderResults results;
  Json preset;  ///< the settings of the preset "paper", by key

  const std::string& label() const { return name; }
  const runfile::RecommendRun& run() const { return *results.run; }
};
/// A report holds one run.
using TrainedRuns = std::span<const TrainedRun>;

extern const Section<TrainedRun> run_summary_section, run_facts_section, test_metrics_section, training_section,
    filter_section, quintiles_section, run_checks_section, run_reading_section, run_files_section;

// The sections of a report of one run, in this order. Those of compared arms stand there if the run has several arms;
// see compared_arms.h.
extern const std::vector<const Section<TrainedRun>*> opening_run_sections;
extern const std::vector<const Section<ComparedArms>*> answer_sections;
extern const std::vector<const Section<TrainedRun>*> run_sections;
extern const std::vector<const Section<ComparedArms>*> arm_comparison_sections;
extern const std::vector<const Section<TrainedRun>*> closing_run_sections;

}  // namespace gainlens::reports
