#pragma once

#include "reports/figure.h"
#include "reports/results.h"

#include <cstddef>
#include <span>

namespace gainlens::reports {

/// Figures of one sweep, or of several overlaid: one colour, marker and dash for each (palette.h). Each is missing,
/// with the reason, where no run has anything to show; a run that lacks one is left out of it. At least one run, at
/// most `most_runs`.

/// context: n_eff, gate (where there is one), lambda_obs ratio, and gate and precision like for like, against context
/// length.
analyses::Maybe<Figure> context_figure(std::span<const Results> runs);
/// What the context figure draws, for its caption to explain.
struct ContextMarks {
  bool bands;      ///< of one standard deviation; of several runs they would cover each other
  bool intervals;  ///< of the mean over chunks; one chunk has none
  bool changes;    ///< the panel of ln lambda_obs and, where a run has a gate, of logit(gate)
  bool gate;
};
ContextMarks context_marks(std::span<const Results> runs);
/// gain-theory: K measured and predicted from n_eff and S; relative errors beside those of a constant.
analyses::Maybe<Figure> gain_theory_figure(std::span<const Results> runs);
/// sink-vs-k: BOS mass against K, scaled K, and K without key 0, head by head.
analyses::Maybe<Figure> sink_vs_k_figure(std::span<const Results> runs);
/// heatmap-<name>: one panel for each map of the group, in one colour scale for all runs.
/// @param group  index into Results::heatmaps
analyses::Maybe<Figure> heatmap_figure(std::span<const Results> runs, std::size_t group);
/// value-norms: norms of the first keys' values against the others'.
analyses::Maybe<Figure> value_norms_figure(std::span<const Results> runs);
/// sink-lemma: the weight of key 0 against the sink lemma's bound, head by head, without and with the gain.
analyses::Maybe<Figure> sink_lemma_figure(std::span<const Results> runs);

}  // namespace gainlens::reports
