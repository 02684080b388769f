#pragma once

#include "analyses/experiment_comparison.h"
#include "reports/finetune/finetune_report.h"

#include <filesystem>
#include <string>

namespace gainlens::cli {

/// Reads a run of `train finetune` for its report.
/// @param path  a run folder or a run.h5
/// @param name  of the run, for readers
/// @throws InvalidArgument   as runfile::read_experiment_run() and analyses::noise_levels()
/// @throws InternalError     its arms have no levels of noise
reports::FinetunedRun read_finetuned_run(const std::filesystem::path& path, const std::string& name,
                                         const analyses::ExperimentOptions& options);

}  // namespace gainlens::cli
