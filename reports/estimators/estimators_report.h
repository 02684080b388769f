#pragma once

#include "analyses/estimator_truth.h"
#include "reports/made_report.h"

#include <filesystem>

namespace gainlens::reports {

/// Mean V over the true variance, and coverage of e ± 1.96 sqrt(V), against n_eff: a column of two panels for each
/// scenario whose true variance is not 0. Missing with one n_eff alone.
Maybe<Figure> estimators_figure(const analyses::EstimatorTruth& truth);

/// Writes the report of `gainlens estimators` into `out`: see write_files().
/// @throws InvalidArgument, RunFailed  see write_files()
WrittenReport write_estimators_report(const analyses::EstimatorTruth& truth, const std::filesystem::path& out);

}  // namespace gainlens::reports
