#pragma once

#include "reports/recommend/compared_arms.h"
#include "reports/recommend/trained_run.h"
#include "reports/section.h"

#include <span>

namespace gainlens::reports {

const Section<TrainedRun>& run_summary_section();
const Section<TrainedRun>& run_facts_section();
const Section<TrainedRun>& test_metrics_section();
const Section<TrainedRun>& training_section();
const Section<TrainedRun>& filter_section();
const Section<TrainedRun>& quintiles_section();
const Section<TrainedRun>& run_checks_section();
const Section<TrainedRun>& run_reading_section();
const Section<TrainedRun>& run_files_section();

// The sections of a report of one run, in this order. Those of compared arms stand there if the run has several arms;
// see sections.h.
std::span<const Section<TrainedRun>* const> opening_run_sections();
std::span<const Section<ComparedArms>* const> answer_sections();
std::span<const Section<TrainedRun>* const> run_sections();
std::span<const Section<ComparedArms>* const> arm_comparison_sections();
std::span<const Section<TrainedRun>* const> closing_run_sections();

}  // namespace gainlens::reports
