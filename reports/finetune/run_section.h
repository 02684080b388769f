#pragma once

#include "reports/finetune/finetune_report.h"
#include "reports/section.h"

#include <string>

namespace gainlens::reports {

/// The model that was trained, for readers: "gemma-3-270m-q4_k_m.gguf", whose file has a name of its own, else its
/// family, "qwen3"; "a model" where the run says neither.
std::string model_of(const FinetunedRun& run);

/// "sft, bft"
std::string arms_in_words(const FinetunedRun& run);

/// Which model, data and settings, and what of the files was not proven.
extern const Section<FinetunedRun> finetuned_run_section;
/// Training and held-out loss of every arm, epoch by epoch.
extern const Section<FinetunedRun> finetuned_loss_section;
/// What `gainlens check` finds, without the files of checkpoints.
extern const Section<FinetunedRun> finetuned_checks_section;

}  // namespace gainlens::reports
