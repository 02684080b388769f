#pragma once

#include "reports/figures/figure.h"
#include "reports/sweep/sweep_run.h"

namespace gainlens::reports {

/// sink-lemma: the weight of key 0 against the sink lemma's bound, head by head, without and with the gain.
Maybe<Figure> sink_lemma_figure(Runs runs);

}  // namespace gainlens::reports
