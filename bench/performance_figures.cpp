#include "bench/performance_figures.h"

#include "core/check.h"
#include "reports/figures/figure_parts.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <set>

namespace gainlens::bench {

using namespace reports;  // the parts that figures are made of
namespace {

/// One line of a figure.
struct Line {
  std::string name;
  std::vector<PerformancePoint> points;  ///< by ascending length
};

/// Points with the same name form a line. The lines are in the order in which their names first appear.
std::vector<Line> lines_of(const std::vector<PerformancePoint>& points,
                           const std::function<std::string(const PerformancePoint&)>& name) {
  std::vector<Line> lines;
  for (const PerformancePoint& point : points) {
    const auto known =
        std::find_if(lines.begin(), lines.end(), [&](const Line& line) { return line.name == name(point); });
    if (known == lines.end()) {
      lines.push_back({name(point), {point}});
    } else {
      known->points.push_back(point);
    }
  }
  CHECK(lines.size() <= max_runs, "figure: {} lines; at most {} can be told apart, measure fewer shapes", lines.size(),
        max_runs);
  for (Line& line : lines)
    std::sort(line.points.begin(), line.points.end(), [](const auto& a, const auto& b) { return a.tokens < b.tokens; });
  return lines;
}

std::vector<std::int64_t> lengths_of(const std::vector<PerformancePoint>& points) {
  std::set<std::int64_t> lengths;
  for (const PerformancePoint& point : points) lengths.insert(point.tokens);
  return {lengths.begin(), lengths.end()};
}

std::vector<LegendEntry> legend_of(const std::vector<Line>& lines) {
  std::vector<LegendEntry> entries;
  for (std::size_t i = 0; i < lines.size(); ++i)
    entries.push_back({lines[i].name, run_style(i).colour, run_style(i).marker, run_style(i).dash});
  return entries;
}

std::string shape_name(const PerformancePoint& point) {
  std::string name = fmt::format("{{/:Italic d}} {}", point.head_dim);
  if (point.group > 1) name += fmt::format(", group {}", point.group);
  return point.window ? name + fmt::format(", window {}", *point.window) : name;
}

std::string method_name(const PerformancePoint& point) {
  return point.window ? fmt::format("{}, window {}", plain(point.method), *point.window) : plain(point.method);
}

/// Draws all lines into the current panel.
/// @param row  gives the length, the value, and the ends of its interval or NaN
void draw_lines(PlotScript& script, const std::string& prefix, const std::vector<Line>& lines,
                const std::function<std::vector<double>(const PerformancePoint&)>& row, std::string plot) {
  for (std::size_t i = 0; i < lines.size(); ++i) {
    Rows rows;
    for (const PerformancePoint& point : lines[i].points) rows.push_back(row(point));
    const std::string block = fmt::format("{}_{}", prefix, i);
    script.data(block, rows);
    if (!plot.empty()) plot += ", ";
    if (any_finite(rows, 2))
      plot += fmt::format("${} using 1:3:(0):($4-$3) with vectors nohead linewidth 1.2 linecolor rgb '{}' notitle, ",
                          block, colour::ink);
    plot += fmt::format(
        "${} using 1:2 with linespoints pointtype {} pointsize 0.5 linewidth 1.3 dashtype {} linecolor rgb '{}' "
        "notitle",
        block, run_style(i).marker, run_style(i).dash, run_style(i).colour);
  }
  script.line("plot {}", plot);
}

std::vector<double> ratio_row(const PerformancePoint& point) {
  return {static_cast<double>(point.tokens), point.ratio, std::numeric_limits<double>::quiet_NaN(),
          std::numeric_limits<double>::quiet_NaN()};
}

std::vector<double> seconds_row(const PerformancePoint& point) {
  return {static_cast<double>(point.tokens), point.seconds, point.seconds_low, point.seconds_high};
}

std::vector<double> memory_row(const PerformancePoint& point) {
  const double unknown = std::numeric_limits<double>::quiet_NaN();
  return {static_cast<double>(point.tokens), point.peak_bytes / (1 << 20), unknown, unknown};
}

/// Sets a logarithmic y axis for the range of the points, with a label at each power of ten.
/// @param row  as in draw_lines
void logarithmic_y(PlotScript& script, const std::vector<PerformancePoint>& points,
                   const std::function<std::vector<double>(const PerformancePoint&)>& row) {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const PerformancePoint& point : points) {
    const double value = row(point)[1];
    CHECK(value > 0, "figure: {} for {} at T = {}; a logarithmic axis holds positive values only", value, point.method,
          point.tokens);
    low = std::min(low, value);
    high = std::max(high, value);
  }
  script.line("set logscale y 10").line("set yrange [{:.9g}:{:.9g}]", low / 1.6, high * 1.6);
  script.line("set ytics 10").line("set format y '%g'").line("set mytics 1");
}

}  // namespace

Figure performance_ratio_figure(const std::vector<PerformancePoint>& points) {
  ASSERT(!points.empty(), "a figure of no measurement");
  const std::vector<Line> lines = lines_of(points, shape_name);
  const PanelGrid grid{.width = column_width, .height = 2.3, .left = 0.42, .bottom = 0.36};
  double highest = 1;
  for (const PerformancePoint& point : points) highest = std::max(highest, point.ratio);
  PanelFigure script(grid, legend_of(lines));
  script.draw_legend();
  script.length_axis(lengths_of(points), grid.panel_width()).y_axis(0, highest, 0.08);
  script.line("set label 'time over that of libtorch SDPA' at graph 0, graph 1 left offset 0, 0.8");
  draw_lines(script, "ratio", lines, ratio_row,
             fmt::format("1 with lines linewidth 0.9 linecolor rgb '{}' notitle", colour::grey));
  return script.figure("performance-ratio");
}

Figure performance_cost_figure(const std::vector<PerformancePoint>& points) {
  ASSERT(!points.empty(), "a figure of no measurement");
  const std::vector<Line> lines = lines_of(points, method_name);
  const PanelGrid grid{.width = page_width, .height = 2.5, .columns = 2, .left = 0.5, .across = 0.62};
  PanelFigure script(grid, legend_of(lines));
  script.panel(0, "seconds");
  script.length_axis(lengths_of(points), grid.panel_width());
  logarithmic_y(script, points, seconds_row);
  draw_lines(script, "seconds", lines, seconds_row, "");
  script.panel(1, "peak memory beyond the inputs, MiB").line("unset arrow");
  logarithmic_y(script, points, memory_row);
  draw_lines(script, "memory", lines, memory_row, "");
  return script.figure("performance-cost");
}

}  // namespace gainlens::bench
