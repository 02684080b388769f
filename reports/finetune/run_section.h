#pragma once

#include "reports/finetune/finetune_report.h"
#include "reports/section.h"

#include <string>

namespace gainlens::reports {

/// "qwen3", the family of the model that was trained, for readers; "a model" where the run does not say it.
std::string model_of(const FinetunedRun& run);

/// "sft, bft"
std::string arms_in_words(const FinetunedRun& run);

/// Which model, data and settings, and what of the files was not proven.
const Section<FinetunedRun>& finetuned_run_section();
/// What `gainlens check` finds, without the files of checkpoints.
const Section<FinetunedRun>& finetuned_checks_section();

}  // namespace gainlens::reports
