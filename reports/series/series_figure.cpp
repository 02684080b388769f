#include "reports/figures/figure_parts.h"
#include "reports/figures/palette.h"
#include "reports/figures/plot_script.h"
#include "reports/page/typography.h"
#include "reports/series/series_report.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace gainlens::reports {
namespace {

using analyses::PairedDifference;
using analyses::Series;
using analyses::SeriesPoint;

/// place, mean, ends of the interval of the change from the first run, moved to the mean
Rows rows_of(const Series& series, std::size_t quantity) {
  constexpr double no_value = std::numeric_limits<double>::quiet_NaN();
  Rows rows;
  for (const SeriesPoint& point : series.points) {
    const PairedDifference& one = point.quantities[quantity];
    if (!one.second) continue;
    const bool bars = one.interval && one.difference;
    rows.push_back({point.place, *one.second, bars ? *one.second - *one.difference + one.interval->low : no_value,
                    bars ? *one.second - *one.difference + one.interval->high : no_value});
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

}  // namespace

analyses::Maybe<Figure> series_figure(const Series& series) {
  const auto& quantities = analyses::compared_quantities();
  std::vector<std::size_t> drawn;
  for (std::size_t i = 0; i < quantities.size(); ++i)
    if (rows_of(series, i).size() >= 2) drawn.push_back(i);
  if (drawn.empty()) return analyses::Maybe<Figure>::none("no quantity has a mean in two runs");
  constexpr int columns = 3;
  const int rows = (static_cast<int>(drawn.size()) + columns - 1) / columns;
  PanelGrid grid{page_width, 0.7 + 1.75 * rows};
  grid.columns = columns;
  grid.rows = rows;
  grid.left = 0.6;
  grid.across = 0.7;
  PlotScript script;
  start_panels(script, grid);
  for (std::size_t panel = 0; panel < drawn.size(); ++panel) {
    const analyses::ComparedQuantity& quantity = quantities[drawn[panel]];
    script.panel(panel, quantity.unit == "1" ? to_plot(quantity.label)
                                             : fmt::format("{} ({})", to_plot(quantity.label), to_plot(quantity.unit)));
    const Rows points = rows_of(series, drawn[panel]);
    Extent reach;
    for (const std::vector<double>& row : points)
      for (const std::size_t column : {1U, 2U, 3U}) reach.add(row[column]);
    if (reach.low == reach.high) {  // a quantity that is the same in all runs
      const double room = std::max(0.1 * std::abs(reach.low), 0.01);
      reach.low -= room;
      reach.high += room;
    }
    const std::string block = fmt::format("series_{}", panel);
    script.data(block, points);
    std::string plot = barred_curve(block, points, run_style(0), {1.2, 0.5, 1.3});
    plot.resize(plot.size() - 2);
    script.value_axis(series.points.front().place, series.points.back().place);
    if (!series.by_step) script.line("{}", named_ticks(series, grid.panel_width()));
    script.line("set xlabel '{}' offset 0,0.5", series.by_step ? "training step" : "")
        .y_axis(reach.low, reach.high, 0.06)
        .line("plot {}", plot);
  }
  script.line("unset multiplot");
  return Figure{"series", grid.width, grid.height, script.text()};
}

}  // namespace gainlens::reports
