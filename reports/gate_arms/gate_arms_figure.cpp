#include "reports/figures/figure_parts.h"
#include "reports/figures/palette.h"
#include "reports/figures/plot_script.h"
#include "reports/gate_arms/gate_arms_report.h"

#include <limits>
#include <string>
#include <vector>

namespace gainlens::reports {
namespace {

using analyses::GateArmEffect;
using analyses::GateArmEffects;

/// Arms that leave the gates far from their scale are no part of the question; their changes would flatten the others.
bool keeps_scale(const GateArmEffect& effect) {
  return effect.slope.has_value() && effect.arm != "raw" && effect.arm != "one";
}

/// context, change, ends of its interval
Rows rows_of(const GateArmEffect& effect, std::size_t place, std::size_t places) {
  constexpr double no_value = std::numeric_limits<double>::quiet_NaN();
  Rows rows;
  for (const analyses::ArmInContext& one : effect.contexts) {
    const auto& interval = one.to_native->interval;
    rows.push_back({aside(static_cast<double>(one.tokens), place, places), one.to_native->mean,
                    interval ? interval->low : no_value, interval ? interval->high : no_value});
  }
  return rows;
}

}  // namespace

analyses::Maybe<Figure> gate_arms_figure(const GateArmEffects& effects) {
  using Result = analyses::Maybe<Figure>;
  std::vector<const GateArmEffect*> drawn;
  std::vector<std::string> names;
  for (const GateArmEffect& effect : effects.arms) {
    if (!keeps_scale(effect)) continue;
    drawn.push_back(&effect);
    names.push_back(effect.arm);
  }
  if (drawn.empty()) return Result::none("no arm keeps the scale of the gates");
  if (drawn.front()->contexts.size() < 2) return Result::none("there is one context");
  std::vector<std::int64_t> contexts;
  contexts.reserve(drawn.front()->contexts.size());
  for (const analyses::ArmInContext& one : drawn.front()->contexts) contexts.push_back(one.tokens);

  const std::vector<LegendEntry> legend = name_runs(names);
  PanelGrid grid{column_width, 2.3 + legend_height(legend, column_width)};
  grid.left = 0.55;
  grid.bottom += legend_height(legend, column_width);
  PlotScript script;
  start_panels(script, grid);
  script.panel(0, "change of the loss, nats per token");
  draw_legend(script, legend, grid.width, grid.height);
  Extent reach{0, 0};  // 0 is on the axis
  std::string plot = fmt::format("0 with lines linewidth 0.9 linecolor rgb '{}' notitle, ", colour::ink);
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    const Rows rows = rows_of(*drawn[i], i, drawn.size());
    for (const std::vector<double>& row : rows)
      for (const std::size_t column : {1U, 2U, 3U}) reach.add(row[column]);
    const std::string block = fmt::format("arm_{}", i);
    script.data(block, rows);
    plot += barred_curve(block, rows, run_style(i), {1.2, 0.5, 1.3});
  }
  plot.resize(plot.size() - 2);
  script.length_axis(contexts, grid.panel_width())
      .line("set xlabel 'context (tokens)' offset 0,0.5")
      .y_axis(reach.low, reach.high, 0.06)
      .line("plot {}", plot)
      .line("unset multiplot");
  return Figure{"gate-arms", grid.width, grid.height, script.text()};
}

}  // namespace gainlens::reports
