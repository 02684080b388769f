#include "reports/recommend/learning_curves_figure.h"

#include "reports/figures/figure_parts.h"
#include "reports/figures/palette.h"
#include "reports/figures/plot_script.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gainlens::reports {
namespace {

using analyses::ArmCurve;
using Curves = std::vector<ArmCurve>;

Rows rows_of(const ArmCurve& curve) {
  Rows rows;
  for (std::size_t epoch = 0; epoch < curve.values.size(); ++epoch)
    rows.push_back({static_cast<double>(epoch + 1), curve.values[epoch]});
  return rows;
}

Rows mean_of(const Curves& curves) {
  std::size_t epochs = std::numeric_limits<std::size_t>::max();
  for (const ArmCurve& curve : curves) epochs = std::min(epochs, curve.values.size());
  Rows rows;
  for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
    double sum = 0;
    for (const ArmCurve& curve : curves) sum += curve.values[epoch];
    rows.push_back({static_cast<double>(epoch + 1), sum / static_cast<double>(curves.size())});
  }
  return rows;
}

Rows best_of(const Curves& curves) {
  Rows rows;
  for (const ArmCurve& curve : curves)
    rows.push_back(
        {static_cast<double>(curve.best_epoch), curve.values[static_cast<std::size_t>(curve.best_epoch - 1)]});
  return rows;
}

/// Adds the data blocks of an arm, and returns what is plotted of them: thin lines first.
std::string plot_arm(PlotScript& script, const Curves& curves, std::size_t arm) {
  const RunStyle& style = run_style(arm);
  std::string plot;
  for (std::size_t seed = 0; seed < curves.size(); ++seed) {
    const std::string block = fmt::format("seed_{}_{}", arm, seed);
    script.data(block, rows_of(curves[seed]));
    plot += fmt::format("${} using 1:2 with lines linewidth 0.5 linecolor rgb '{}' notitle, ", block, style.colour);
  }
  script.data(fmt::format("best_{}", arm), best_of(curves)).data(fmt::format("mean_{}", arm), mean_of(curves));
  plot += fmt::format("$best_{} using 1:2 with points pointtype {} pointsize 0.4 linecolor rgb '{}' notitle, ", arm,
                      style.marker, style.colour);
  return plot + fmt::format("$mean_{} using 1:2 with lines linewidth 2.4 dashtype {} linecolor rgb '{}' notitle, ", arm,
                            style.dash, style.colour);
}

}  // namespace

analyses::Maybe<Figure> learning_curves_figure(const analyses::ArmComparison& comparison, const std::string& name) {
  const Curves* const arms[] = {&comparison.baseline_curves, &comparison.candidate_curves};
  const std::string labels[] = {comparison.baseline, comparison.candidate};
  double low = std::numeric_limits<double>::infinity(), high = -low;
  std::size_t epochs = 0;
  std::vector<LegendEntry> legend;
  const std::vector<LegendEntry> names = name_runs(labels);
  PlotScript script;
  std::string plot;
  for (std::size_t arm = 0; arm < 2; ++arm) {
    if (arms[arm]->empty()) continue;
    for (const ArmCurve& curve : *arms[arm]) {
      epochs = std::max(epochs, curve.values.size());
      low = std::min(low, *std::min_element(curve.values.begin(), curve.values.end()));
      high = std::max(high, *std::max_element(curve.values.begin(), curve.values.end()));
    }
    legend.push_back(names[arm]);
    plot += plot_arm(script, *arms[arm], arm);
  }
  if (epochs == 0) return analyses::Maybe<Figure>::none("neither arm is trained");
  plot.resize(plot.size() - 2);
  PanelGrid grid{page_width, 2.5 + legend_height(legend, page_width)};
  grid.left = 0.6;
  grid.bottom += legend_height(legend, page_width);
  start_panels(script, grid);
  script.value_axis(1, static_cast<double>(std::max<std::size_t>(epochs, 2)));
  script.y_axis(low, high, 0.06).line("set xlabel 'epoch' offset 0,0.5");
  script.line("set ylabel \"{}, validation\" offset 1.2,0", plain(analyses::curve_metric));
  draw_legend(script, legend, grid.width, grid.height);
  script.line("plot {}", plot).line("unset multiplot");
  return Figure{name, grid.width, grid.height, script.text()};
}

}  // namespace gainlens::reports
