#pragma once

#include "reports/figures/figure.h"
#include "reports/sweep/sweep_run.h"

namespace gainlens::reports {

/// Layer x head, coloured by the attention that goes to sinks; a dot where the sink is BOS, a ring where it is another
/// token. Several runs stand side by side with one scale of colours.
Maybe<Figure> sink_map_figure(Runs runs);

}  // namespace gainlens::reports
