#pragma once

#include "analyses/series.h"
#include "reports/figures/figure.h"
#include "reports/made_report.h"
#include "reports/sweep/sweep_run.h"

#include <filesystem>
#include <span>

namespace gainlens::reports {

/// What the report of a series of runs is about.
struct ReadSeries {
  const analyses::Series* series;
  std::string label() const { return "series"; }
};

/// Every quantity along the axis, one panel each.
Maybe<Figure> series_figure(const analyses::Series& series);
/// The quantities that are compared head by head, one panel each: a line for the mean over the heads of each layer.
Maybe<Figure> series_layers_figure(const analyses::Series& series);

/// Writes the report of `gainlens report RUN .. --axis step|name` into `out`: see write_files().
/// @param runs  those of the series, whose models and texts the page names
/// @throws InvalidArgument, RunFailed  see write_files()
WrittenReport write_series_report(const analyses::Series& series, std::span<const RunInput> runs,
                                  const std::filesystem::path& out, const Writing& writing);

}  // namespace gainlens::reports
