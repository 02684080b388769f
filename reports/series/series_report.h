#pragma once

#include "analyses/series.h"
#include "reports/figures/figure.h"
#include "reports/made_report.h"

#include <filesystem>

namespace gainlens::reports {

/// What the report of a series of runs is about.
struct ReadSeries {
  const analyses::Series* series;
  std::string label() const { return "series"; }
};

/// Every quantity along the axis, one panel each.
analyses::Maybe<Figure> series_figure(const analyses::Series& series);

/// Writes the report of `gainlens report RUN .. --axis step|name` into `out`: see write_files().
/// @throws InvalidArgument, RunFailed  see write_files()
WrittenReport write_series_report(const analyses::Series& series, const std::filesystem::path& out,
                                  const Writing& writing);

}  // namespace gainlens::reports
