#pragma once

#include "reports/figures/figure.h"
#include "reports/sweep/sweep_run.h"

namespace gainlens::reports {

/// sink-vs-k: BOS mass against K, scaled K, and K without key 0, head by head.
Maybe<Figure> sink_vs_k_figure(Runs runs);

}  // namespace gainlens::reports
