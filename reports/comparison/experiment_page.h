#pragma once

#include "analyses/experiment_comparison.h"
#include "reports/made_report.h"

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace gainlens::reports {

/// Writes the page of `gainlens compare` of experiments, such as fine-tunings, into `out`: see write_files().
/// @param comparisons  at least one
/// @param unproven     sentences on what of their runs could not be proven
/// @throws InvalidArgument, RunFailed  see write_files()
WrittenReport write_experiment_page(std::span<const analyses::ExperimentComparison> comparisons,
                                    const std::vector<std::string>& unproven, const std::filesystem::path& out);

}  // namespace gainlens::reports
