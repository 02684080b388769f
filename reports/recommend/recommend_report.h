#pragma once

#include "reports/made_report.h"
#include "reports/recommend/run_sections.h"

#include <filesystem>

namespace gainlens::reports {

/// Writes the report of one recommender run into `out`: see write_files(). The same run gives the same bytes. If the
/// run has several arms, the page holds the comparisons of later arms with the first.
/// @throws InvalidArgument, RunFailed  see write_files()
WrittenReport write_recommend_report(const TrainedRun& run, const std::filesystem::path& out,
                                     const Writing& writing = {});

}  // namespace gainlens::reports
