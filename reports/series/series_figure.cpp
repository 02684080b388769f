#include "analyses/statistics.h"
#include "reports/figures/figure_parts.h"
#include "reports/figures/palette.h"
#include "reports/figures/plot_script.h"
#include "reports/page/typography.h"
#include "reports/series/series_report.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <vector>

namespace gainlens::reports {
namespace {

using analyses::PairedDifference;
using analyses::Series;
using analyses::SeriesPoint;

/// place, mean, ends of the interval of the change from the first run, moved to the mean. They end where the quantity
/// can go no farther.
Rows rows_of(const Series& series, std::size_t quantity) {
  constexpr double no_value = std::numeric_limits<double>::quiet_NaN();
  Rows rows;
  for (const SeriesPoint& point : series.points) {
    const PairedDifference& one = point.quantities[quantity];
    if (!one.second) continue;
    const bool bars = one.interval && one.difference;
    const double first = bars ? *one.second - *one.difference : no_value;
    rows.push_back({point.place, *one.second, bars ? std::max(0.0, first + one.interval->low) : no_value,
                    bars ? std::min(one.quantity.most(), first + one.interval->high) : no_value});
  }
  return rows;
}

/// Names of the runs as ticks; of many runs some are left out, so that no two touch.
std::string named_ticks(const Series& series, double width) {
  std::size_t longest = 1;
  for (const SeriesPoint& point : series.points)
    longest = std::max(longest, std::min<std::size_t>(12, point.label.size()));
  const double room = static_cast<double>(longest) * character_width + label_gap;
  const auto every =
      static_cast<std::size_t>(std::max(1.0, std::ceil(room * static_cast<double>(series.points.size()) / width)));
  std::string ticks = "set xtics (";
  for (std::size_t i = 0; i < series.points.size(); i += every)
    ticks += fmt::format("{}\"{}\" {}", i == 0 ? "" : ", ", plain(printable(series.points[i].label, 12)), i);
  return ticks + ")";
}

/// The panels of a series: three in a row.
PanelGrid grid_of(std::size_t panels, double right) {
  constexpr int columns = 3;
  const int rows = (static_cast<int>(panels) + columns - 1) / columns;
  PanelGrid grid{page_width, 0.7 + 1.75 * rows};
  grid.columns = columns;
  grid.rows = rows;
  grid.left = 0.6;
  grid.right = right;
  grid.across = 0.7;
  return grid;
}

/// Title and axes of one panel.
/// @param reach  of what is drawn
void start_panel(PlotScript& script, std::size_t panel, const analyses::ComparedQuantity& quantity, Extent reach,
                 const Series& series, const PanelGrid& grid) {
  script.panel(panel, quantity.unit == "1" ? to_plot(quantity.label)
                                           : fmt::format("{} ({})", to_plot(quantity.label), to_plot(quantity.unit)));
  if (reach.low == reach.high) {  // a quantity that is the same in all runs
    const double room = std::max(0.1 * std::abs(reach.low), 0.01);
    reach.low = std::max(0.0, reach.low - room);  // no quantity can be below 0
    reach.high += room;
  }
  script.value_axis(series.points.front().place, series.points.back().place);
  if (!series.by_step) script.line("{}", named_ticks(series, grid.panel_width()));
  script.line("set xlabel '{}' offset 0,0.5", series.by_step ? "training step" : "")
      .y_axis(reach.low, reach.high, 0.06);
}

/// Place and mean over the heads that have a value, by layer in their order, of the runs with one.
std::map<std::int64_t, Rows> rows_of_layers(const Series& series, std::size_t quantity) {
  std::map<std::int64_t, Rows> layers;
  for (const SeriesPoint& point : series.points) {
    std::map<std::int64_t, std::vector<double>> values;
    for (const analyses::HeadDifference& head : point.heads)
      if (head.quantities[quantity].second) values[head.layer].push_back(*head.quantities[quantity].second);
    for (const auto& [layer, head_values] : values) layers[layer].push_back({point.place, analyses::mean(head_values)});
  }
  return layers;
}

}  // namespace

Maybe<Figure> series_figure(const Series& series) {
  const auto& quantities = analyses::compared_quantities();
  std::vector<std::size_t> drawn;
  for (std::size_t i = 0; i < quantities.size(); ++i)
    if (rows_of(series, i).size() >= 2) drawn.push_back(i);
  if (drawn.empty()) return Maybe<Figure>::none("no quantity has a mean in two runs");
  const PanelGrid grid = grid_of(drawn.size(), PanelGrid{}.right);
  PanelFigure script(grid);
  for (std::size_t panel = 0; panel < drawn.size(); ++panel) {
    const Rows points = rows_of(series, drawn[panel]);
    Extent reach;
    reach.add(points, {1, 2, 3});
    start_panel(script, panel, quantities[drawn[panel]], reach, series, grid);
    const std::string block = fmt::format("series_{}", panel);
    script.data(block, points);
    std::string plot = barred_curve(block, points, run_style(0), {1.2, 0.5, 1.3});
    plot.resize(plot.size() - 2);
    script.line("plot {}", plot);
  }
  return script.figure("series");
}

Maybe<Figure> series_layers_figure(const Series& series) {
  if (!series.no_heads.empty()) return Maybe<Figure>::none(series.no_heads);
  std::set<std::int64_t> numbers;
  for (const SeriesPoint& point : series.points)
    for (const analyses::HeadDifference& head : point.heads) numbers.insert(head.layer);
  const std::vector<std::int64_t> layers(numbers.begin(), numbers.end());
  if (layers.empty()) return Maybe<Figure>::none("no layer was measured in all runs");
  const PanelGrid grid = grid_of(analyses::compared_head_quantities.size(), 0.62);
  PanelFigure script(grid);
  script.layer_colours(layers).line("unset colorbox").line("unset key");
  for (std::size_t panel = 0; panel < analyses::compared_head_quantities.size(); ++panel) {
    const auto by_layer = rows_of_layers(series, panel);
    Extent reach;
    for (const auto& [layer, rows] : by_layer)
      for (const std::vector<double>& row : rows) reach.add(row[1]);
    if (by_layer.empty()) reach.add(0);
    start_panel(script, panel, series.points.front().heads.front().quantities[panel].quantity, reach, series, grid);
    std::string plot;
    for (const auto& [layer, rows] : by_layer) {
      const std::string block = fmt::format("layer_{}_{}", panel, layer);
      script.data(block, rows);
      plot += fmt::format(
          "{}${} using 1:2:({:.6g}) with linespoints pointtype 7 pointsize 0.3 linewidth 1.2 "
          "linecolor palette notitle",
          plot.empty() ? "" : ", ", block, layer_colour(layers, layer));
    }
    if (panel == 0)
      script.line("set colorbox user origin screen 0.935, screen 0.2 size screen 0.012, screen 0.6 noborder");
    script.line("plot {}", plot.empty() ? "NaN notitle" : plot);
    script.line("unset colorbox");
  }
  return script.figure("series-layers");
}

}  // namespace gainlens::reports
