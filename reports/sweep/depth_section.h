#pragma once

#include "analyses/depth.h"
#include "reports/figures/figure.h"
#include "runfile/depth_run.h"

#include <string>

namespace gainlens::reports {

/// depth: K and lambda by layer in both readings, and the error of the diagonal rule.
Figure depth_figure(const analyses::DepthAtLength& length);

/// The precision of the stream by layer, at the longest length of the run.
std::string print_depth(const runfile::DepthRun& run);

}  // namespace gainlens::reports
