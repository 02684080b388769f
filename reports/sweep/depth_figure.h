#pragma once

#include "analyses/depth.h"
#include "reports/figures/figure.h"

namespace gainlens::reports {

/// depth: K and lambda by layer in both readings, and the error of the diagonal rule.
Figure depth_figure(const analyses::DepthAtLength& length);

}  // namespace gainlens::reports
