#pragma once

#include "analyses/context.h"
#include "analyses/gain_theory.h"
#include "analyses/heatmap.h"
#include "analyses/sink_vs_k.h"
#include "analyses/value_norms.h"
#include "reports/figure.h"

#include <string>
#include <vector>

namespace gainlens::reports {

/// Figures of a sweep. Each is missing, with the reason, where its analysis has nothing to show.

/// context: n_eff, gate (where there is one), lambda_obs ratio, and gate and precision like for like, against context length.
analyses::Maybe<Figure> context_figure(const analyses::Context& context);
/// gain-theory: K measured and predicted from n_eff and S; relative errors beside those of a constant.
analyses::Maybe<Figure> gain_theory_figure(const analyses::GainTheory& theory);
/// sink-vs-k: BOS mass against K, scaled K, and K without key 0, head by head.
analyses::Maybe<Figure> sink_vs_k_figure(const analyses::SinkVsK& result);
/// heatmap-<name>: one panel for each map; `name` is that of the first quantity.
analyses::Maybe<Figure> heatmap_figure(const std::string& name, const std::vector<analyses::Maybe<analyses::Heatmap>>& maps);
/// value-norms: norms of the first keys' values against the others'.
analyses::Maybe<Figure> value_norms_figure(const analyses::Maybe<analyses::ValueNormsResult>& result);

}  // namespace gainlens::reports
