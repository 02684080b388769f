#pragma once

#include "analyses/recommender_comparison.h"
#include "reports/made_report.h"

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace gainlens::reports {

/// Writes the report of comparisons of recommender arms into `out`: see write_files().
/// @param comparisons  at least one; titles differ
/// @param notes        sentences for the head of the page
/// @throws InvalidArgument, RunFailed  see write_files()
WrittenReport write_compare_report(std::span<const analyses::ArmComparison> comparisons,
                                   const std::vector<analyses::PooledComparison>& pooled,
                                   const std::filesystem::path& out, const std::vector<std::string>& notes = {});

}  // namespace gainlens::reports
