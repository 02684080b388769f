#include "reports/sweep/sink_lemma_figure.h"

#include "analyses/audit.h"
#include "reports/figures/figure_parts.h"
#include "reports/sweep/run_words.h"

#include <algorithm>
#include <cmath>

namespace gainlens::reports {
namespace {

using analyses::LemmaHead;

/// bound, weight of key 0, bound with the gain
Rows rows_of(const SweepRun& run) {
  Rows rows;
  if (!run.of(analyses::audit).lemma) return rows;
  for (const LemmaHead& head : run.of(analyses::audit).lemma->heads) {
    if (!head.set_apart && std::isfinite(head.bound) && std::isfinite(head.bos_mass) && std::isfinite(head.gain_bound))
      rows.push_back({head.bound, head.bos_mass, head.gain_bound});
  }
  return rows;
}

double largest(const Rows& rows, double so_far) {
  for (const auto& row : rows) so_far = std::max(so_far, *std::max_element(row.begin(), row.end()));
  return so_far;
}

/// One run: its two bounds in two colours. Several: the run's colour, hollow with the gain.
std::string points(std::size_t run, bool one) {
  const RunStyle& style = run_style(run);
  return fmt::format(
      "$heads_{0} using 3:2 with points pointtype {1} pointsize 0.45 linewidth 0.8 linecolor rgb '{2}' {3}, "
      "$heads_{0} using 1:2 with points pointtype {4} pointsize 0.45 linecolor rgb '{5}' {6}",
      run, one ? 4 : style.hollow_marker, one ? colour::vermillion : style.colour,
      one ? "title 'bound with the gain'" : "notitle", style.marker, style.colour,
      one ? "title 'bound of the lemma'" : "notitle");
}

}  // namespace

Maybe<Figure> sink_lemma_figure(Runs runs) {
  const bool one = runs.size() == 1;
  PanelGrid grid{one ? column_width : page_width, 2.7};
  grid.top = 0.12;
  grid.right = 0.2;                        // the last tick label
  if (!one) grid.left = grid.right = 1.7;  // square: both axes are weights
  PanelFigure script(grid, name_runs(labels_of(runs), LegendMark::marker));
  std::string plot;
  double top = 0;
  bool any_bound = false;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    const Rows rows = rows_of(runs[run]);
    if (rows.empty()) continue;
    script.data(fmt::format("heads_{}", run), rows);
    plot += ", " + points(run, one);
    top = largest(rows, top);
    for (const std::vector<double>& head : rows) any_bound = any_bound || head[0] > 0 || head[2] > 0;
  }
  if (!plot.empty() && !any_bound)
    return Maybe<Figure>::none("no head has a bound above 0, so that every point would lie on the axis");
  if (plot.empty()) {
    const auto& lemma = runs.front().of(analyses::audit).lemma;
    return Maybe<Figure>::none(lemma ? "no head has a finite bound" : lemma.reason());
  }
  const double reach = top > 0 ? 1.05 * top : 1;
  script.line("set xlabel 'bound on BOS mass' offset 0,0.5").line("set ylabel 'BOS mass' offset 1.4,0");
  script.value_axis(0, reach).y_axis(0, reach, one ? 0.25 : 0.05).line("unset label");
  script.draw_legend();
  script.line("{}", one ? "set key top left Left reverse" : "unset key");
  script.line("plot x <= {:.9g} && x >= 0 ? x : NaN with lines linewidth 0.9 dashtype 2 linecolor rgb '{}' notitle{}",
              reach, colour::grey, plot);
  return script.figure("sink-lemma");
}

}  // namespace gainlens::reports
