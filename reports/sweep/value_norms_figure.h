#pragma once

#include "reports/figures/figure.h"
#include "reports/sweep/sweep_run.h"

namespace gainlens::reports {

/// value-norms: norms of the first keys' values against those of the others.
Maybe<Figure> value_norms_figure(Runs runs);

}  // namespace gainlens::reports
