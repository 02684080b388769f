#include "core/check.h"
#include "reports/figures/figure_parts.h"
#include "reports/figures/palette.h"
#include "reports/figures/plot_script.h"
#include "reports/gate_arms/gate_arms_report.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::reports {
namespace {

using analyses::GateArmEffect;
using analyses::GateArmEffects;

/// An arm has one style in every figure, whichever arms stand beside it. Arms of one colour belong together.
struct ArmStyle {
  std::string_view arm;
  RunStyle style;
};
constexpr ArmStyle styles[] = {
    {"constant", {colour::grey, 15, 14, 2}},
    {"gain", {colour::blue, 7, 6, 1}},
    {"scaled-gain", {colour::orange, 11, 10, 3}},
    {"modulated", {colour::green, 9, 8, 1}},
    {"permuted", {colour::vermillion, 5, 4, 2}},
    {"position", {colour::purple, 13, 12, 5}},
    {"raw", {colour::ink, 7, 6, 1}},
    {"one", {colour::ink, 5, 4, 2}},
};

const RunStyle& style_of(const GateArmEffect& effect) {
  const auto* const found = std::ranges::find(styles, std::string_view(effect.arm), &ArmStyle::arm);
  ASSERT(found != std::end(styles), "no style for arm '{}'", effect.arm);
  return found->style;
}

/// context, change, ends of its interval
Rows rows_of(const GateArmEffect& effect, std::size_t place, std::size_t places) {
  Rows rows;
  for (const analyses::ArmInContext& one : effect.contexts) {
    rows.push_back(barred_point(aside(static_cast<double>(one.tokens), place, places), one.to_native->mean,
                                one.to_native->interval));
  }
  return rows;
}

using Arms = std::vector<const GateArmEffect*>;

/// A thin line at the context that the model was trained with.
void mark_trained(PlotScript& script, std::int64_t tokens) {
  script
      .line(
          "set arrow 1 from first {0}, graph 0 to first {0}, graph 1 nohead back linewidth 0.7 dashtype 3 linecolor "
          "rgb '{1}'",
          tokens, colour::frame)
      .line("set label \"{{/:Italic T}}_{{train}}\" at first {}, graph 0.95 left offset 0.3,0", tokens);
}

void draw_arms(PlotScript& script, const Arms& arms, std::size_t panel) {
  Extent reach{0, 0};  // 0 is on the axis
  std::string plot = fmt::format("0 with lines linewidth 0.9 linecolor rgb '{}' notitle, ", colour::ink);
  for (std::size_t i = 0; i < arms.size(); ++i) {
    const Rows rows = rows_of(*arms[i], i, arms.size());
    reach.add(rows, {1, 2, 3});
    const std::string block = fmt::format("arm_{}_{}", panel, i);
    script.data(block, rows);
    plot += barred_curve(block, rows, style_of(*arms[i]), {1.2, 0.5, 1.3});
  }
  plot.resize(plot.size() - 2);
  constexpr double headroom = 0.16;  // for the label of the line
  script.y_axis(reach.low, reach.high, headroom).line("plot {}", plot);
}

}  // namespace

bool keeps_scale(const GateArmEffect& effect) {
  return effect.arm != "raw" && effect.arm != "one";
}

Maybe<Figure> gate_arms_figure(const GateArmEffects& effects) {
  using Result = Maybe<Figure>;
  if (effects.arms.front().contexts.size() < 2) return Result::none("there is one context");
  Arms with_scale, without;
  std::vector<LegendEntry> legend;
  for (const GateArmEffect& effect : effects.arms) {
    if (!effect.slope) continue;  // native
    (keeps_scale(effect) ? with_scale : without).push_back(&effect);
    const RunStyle& style = style_of(effect);
    legend.push_back({plain(effect.arm), style.colour, style.marker, style.dash});
  }
  std::vector<Arms> panels;
  for (const Arms& arms : {with_scale, without})
    if (!arms.empty()) panels.push_back(arms);
  std::vector<std::int64_t> contexts;
  for (const analyses::ArmInContext& one : effects.arms.front().contexts) contexts.push_back(one.tokens);

  PanelGrid grid{column_width, 0};
  grid.left = 0.55;
  grid.rows = static_cast<int>(panels.size());
  grid.down = 0.46;
  const double panel_height = panels.size() > 1 ? 1.4 : 1.66;
  grid.height = grid.top + grid.bottom + grid.rows * panel_height + (grid.rows - 1) * grid.down;
  PanelFigure script(grid, legend);
  script.length_axis(contexts, grid.panel_width());
  for (std::size_t i = 0; i < panels.size(); ++i) {
    const bool scaled = keeps_scale(*panels[i].front());
    script.panel(i, scaled ? "change of the loss, nats per token" : "the same with K, or 1, as the gate");
    mark_trained(script, effects.trained_length);
    // The panels share their axis.
    script.line("set xlabel '{}' offset 0,0.5", i + 1 == panels.size() ? "context (tokens)" : "");
    draw_arms(script, panels[i], i);
  }
  return script.figure("gate-arms");
}

}  // namespace gainlens::reports
