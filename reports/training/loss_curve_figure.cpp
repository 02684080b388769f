#include "reports/training/loss_curve_figure.h"

#include "core/check.h"
#include "reports/figures/plot_script.h"

namespace gainlens::reports {

Figure loss_curve_figure(const std::vector<LossCurvePoint>& points, std::int64_t best_step) {
  ASSERT(!points.empty(), "a loss curve of no evaluations");
  std::vector<std::vector<double>> rows, best;
  for (const LossCurvePoint& point : points) {
    rows.push_back({static_cast<double>(point.step), point.training_loss, point.validation_loss});
    if (point.step == best_step) best.push_back({static_cast<double>(point.step), point.validation_loss});
  }
  PlotScript script;
  script.data("loss", rows).data("best", best);
  script.value_axis(0, static_cast<double>(points.back().step));
  script.line("set xlabel 'optimiser steps'").line("set ylabel 'loss, nats per token'").line("set key top right");
  script.line("plot $loss using 1:2 with lines lw 1.5 dt 2 lc rgb '{}' title 'training', \\", colour::grey);
  script.line("     $loss using 1:3 with lines lw 2 lc rgb '{}' title 'held out', \\", colour::blue);
  script.line("     $best using 1:2 with points pt 7 ps 0.9 lc rgb '{}' title 'best'", colour::vermillion);
  return {"loss-curve", column_width, 2.4, script.text()};
}

}  // namespace gainlens::reports
