#pragma once

#include "reports/figures/figure.h"
#include "reports/sweep/sweep_run.h"

#include <cstddef>

namespace gainlens::reports {

/// context: n_eff, gate (where there is one), lambda_obs relative to T_min, and the changes of gate and precision on
/// one scale, against context length. Several runs are overlaid, one colour, marker and dash for each (palette.h), and
/// likewise the kinds of attention of one run; a line that lacks a quantity is left out of its panel. Missing, with the
/// reason, where no run has anything to show.
/// @param runs  at least one, at most max_runs; so for every figure of a sweep
Maybe<Figure> context_figure(Runs runs);

/// What the context figure draws, for its caption to explain.
struct ContextMarks {
  bool bands;      ///< of one standard deviation; drawn for one run, since those of several would cover each other
  bool intervals;  ///< of the mean over chunks; one chunk has none
  bool changes;    ///< the panel of ln lambda_obs and, where a run has a gate, of logit(gate)
  bool gate;
  std::size_t lines;  ///< of each panel: one a run, or of one run one a kind of attention
};
ContextMarks context_marks(Runs runs);

}  // namespace gainlens::reports
