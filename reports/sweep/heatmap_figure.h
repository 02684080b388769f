#pragma once

#include "reports/figures/figure.h"
#include "reports/sweep/sweep_run.h"

#include <string>

namespace gainlens::reports {

/// heatmap-<name>: one panel for each map of the group, in one colour scale for all runs.
/// @param group  name of a HeatmapGroup
Maybe<Figure> heatmap_figure(Runs runs, const std::string& group);

}  // namespace gainlens::reports
