#pragma once

#include "analyses/estimator_truth.h"
#include "reports/made_report.h"

#include <filesystem>

namespace gainlens::reports {

/// Writes the report of `gainlens estimators` into `out`: see write_files().
/// @throws InvalidArgument, RunFailed  see write_files()
WrittenReport write_estimators_report(const analyses::EstimatorTruth& truth, const std::filesystem::path& out);

}  // namespace gainlens::reports
