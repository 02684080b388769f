#include "reports/training/learning_curves_figure.h"

#include "core/ranking_metrics.h"
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
using Member = std::vector<double> ArmCurve::*;

Rows rows_of(const std::vector<double>& values) {
  Rows rows;
  for (std::size_t epoch = 0; epoch < values.size(); ++epoch)
    rows.push_back({static_cast<double>(epoch + 1), values[epoch]});
  return rows;
}

Rows best_of(const Curves& curves, Member member) {
  Rows rows;
  for (const ArmCurve& curve : curves) {
    const auto place = static_cast<std::size_t>(curve.best_epoch - 1);
    if (place < (curve.*member).size()) rows.push_back({static_cast<double>(curve.best_epoch), (curve.*member)[place]});
  }
  return rows;
}

bool has(std::span<const LabelledCurves> arms, Member member) {
  return std::any_of(arms.begin(), arms.end(), [&](const LabelledCurves& arm) {
    return std::any_of(arm.curves.begin(), arm.curves.end(),
                       [&](const ArmCurve& curve) { return !(curve.*member).empty(); });
  });
}

/// Adds the data blocks of an arm, and returns what is plotted of them: thin lines first.
std::string plot_arm(PlotScript& script, const LabelledCurves& labelled, Member member, const std::string& panel,
                     std::size_t arm) {
  const RunStyle& style = run_style(labelled.style);
  const Curves& curves = labelled.curves;
  std::string plot;
  const auto add = [&](const std::string& block, const Rows& rows, const std::string& drawn, const char* alpha = "") {
    if (rows.empty()) return;
    script.data(block, rows);
    plot += fmt::format("${} using 1:2 with {} linecolor rgb '#{}{}' notitle, ", block, drawn, alpha,
                        style.colour.substr(1));
  };
  for (std::size_t seed = 0; seed < curves.size(); ++seed)
    add(fmt::format("{}_{}_{}", panel, arm, seed), rows_of(curves[seed].*member), "lines linewidth 0.5",
        "90");  // the mean is seen through them
  add(fmt::format("{}_best_{}", panel, arm), best_of(curves, member),
      fmt::format("points pointtype {} pointsize 0.4", style.marker));
  add(fmt::format("{}_mean_{}", panel, arm), rows_of(analyses::mean_curve(curves, member)),
      fmt::format("lines linewidth 2.4 dashtype {}", style.dash));
  return plot;
}

void draw_panel(PlotScript& script, std::span<const LabelledCurves> arms, Member member, const std::string& name) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  std::string plot;
  for (std::size_t arm = 0; arm < arms.size(); ++arm) {
    for (const ArmCurve& curve : arms[arm].curves) {
      for (const double value : curve.*member) low = std::min(low, value), high = std::max(high, value);
    }
    plot += plot_arm(script, arms[arm], member, name, arm);
  }
  plot.resize(plot.size() - 2);
  script.y_axis(low, high, 0.06).line("plot {}", plot);
}

}  // namespace

std::string curve_metric_title() {
  return parse_ranking_metric(std::string(analyses::curve_metric)).title();
}

Maybe<Figure> learning_curves_figure(std::span<const LabelledCurves> arms, const std::string& name,
                                     const CurveMetric& metric) {
  if (!has(arms, &ArmCurve::values)) return Maybe<Figure>::none("no arm is trained");
  std::size_t styles = 0, epochs = 0;
  for (const LabelledCurves& arm : arms) styles = std::max(styles, arm.style + 1);
  if (styles > max_runs)
    return Maybe<Figure>::none(fmt::format("{} arms; {} can be told apart in one report", styles, max_runs));
  std::vector<LegendEntry> legend;  // of the arms that are drawn
  for (const LabelledCurves& arm : arms) {
    for (const ArmCurve& curve : arm.curves) epochs = std::max(epochs, curve.values.size());
    if (!arm.curves.empty()) legend.push_back(name_run(arm.label, arm.style));
  }
  const bool loss = has(arms, &ArmCurve::loss);
  PanelGrid grid{page_width, 2.3};
  grid.columns = loss ? 2 : 1;
  grid.left = 0.5;
  PanelFigure script(grid, legend);
  script.value_axis(1, static_cast<double>(std::max<std::size_t>(epochs, 2)));
  if (epochs <= 5) script.line("set xtics 1");  // there is no epoch 1.5
  script.line("set xlabel 'epoch' offset 0,0.5");
  std::size_t panel = 0;
  if (loss) {
    script.panel(panel++, "training loss (nats)");
    draw_panel(script, arms, &ArmCurve::loss, "loss");
  }
  script.panel(panel++, fmt::format("{} {}", metric.held_out, plain(metric.title)));
  draw_panel(script, arms, &ArmCurve::values, "metric");
  return script.figure(name);
}

std::string learning_curves_in_words(std::span<const LabelledCurves> arms, const CurveMetric& metric) {
  return fmt::format(
      "{}{} on the {} after each epoch. Thin lines are seeds. Their markers are the epochs whose weights "
      "were tested. The thick line is the mean over seeds; it ends where the first seed ends.",
      has(arms, &ArmCurve::loss) ? "(a) The mean training loss of each epoch. (b) " : "", metric.title, metric.items);
}

CsvTable learning_curves_csv(std::span<const LabelledCurves> arms, const CurveMetric& metric) {
  CsvTable table{"learning-curves", {"arm", "seed", "epoch", "training_loss", metric.column, "is_best"}, {}};
  for (const LabelledCurves& arm : arms) {
    for (const ArmCurve& curve : arm.curves) {
      for (std::size_t epoch = 0; epoch < curve.values.size(); ++epoch) {
        const auto number = static_cast<std::int64_t>(epoch + 1);
        table.rows.push_back({arm.label, std::to_string(curve.seed), number,
                              epoch < curve.loss.size() ? Cell(curve.loss[epoch]) : empty_cell(), curve.values[epoch],
                              std::int64_t{number == curve.best_epoch ? 1 : 0}});
      }
    }
  }
  return table;
}

}  // namespace gainlens::reports
