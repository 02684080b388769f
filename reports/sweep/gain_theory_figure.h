#pragma once

#include "reports/figures/figure.h"
#include "reports/sweep/sweep_run.h"

namespace gainlens::reports {

/// gain-theory: K measured and predicted from n_eff and S; relative errors beside those of a constant.
Maybe<Figure> gain_theory_figure(Runs runs);

}  // namespace gainlens::reports
