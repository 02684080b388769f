#include "reports/figures.h"
#include "reports/plot_script.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace gainlens::reports {
namespace {

using analyses::Correlation;
using analyses::Maybe;
using analyses::Measured;
using analyses::SinkPoint;
using analyses::SinkVsK;

struct Panel {
  std::size_t variant;  // of analyses::gain_variants
  std::string_view title;
  std::string_view axis;
};
constexpr std::array<Panel, 3> panels = {{
    {0, "{/:Italic K}", "{/:Italic K} (1), last-quarter queries"},
    {2, "{/:Italic K} of scaled values", "scaled {/:Italic K} (1), last-quarter queries"},
    {4, "{/:Italic K} without key 0", "{/:Italic K} of the other keys (1), second-half queries"},
}};

using Rows = std::vector<std::vector<double>>;

/// How points are drawn: one shape for each group.
struct Group {
  std::string_view block;
  std::string_view title;
  int point_type;
  bool coloured;
};
constexpr std::array<Group, 3> groups = {{
    {"apart", "set apart: key 0 out of the window", 6, false},  // drawn first: it must not cover the others
    {"windowed", "windowed attention", 9, true},
    {"full", "global attention", 7, true},
}};

std::size_t group_of(const SinkPoint& point) {
  if (point.set_apart) return 0;
  return point.attention == "global" ? 2 : 1;
}

Rows rows_of(const SinkVsK& result, std::size_t variant, std::size_t group) {
  Rows rows;
  for (const SinkPoint& point : result.points) {
    if (group_of(point) != group || !std::isfinite(point.bos_mass) || !std::isfinite(point.gain[variant])) continue;
    rows.push_back({point.gain[variant], point.bos_mass, static_cast<double>(point.layer)});
  }
  return rows;
}

std::string coefficient(const Measured& r, const Measured& p) {
  if (!r) return "none";
  return fmt::format("{:+.2f}{}", *r, p ? fmt::format(", naive {{/:Italic p}} = {:.2g}", *p) : "");
}

void draw(PlotScript& script, const SinkVsK& result, const Panel& panel, std::size_t index, bool shapes_differ) {
  std::string plot;
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    const Rows rows = rows_of(result, panel.variant, group);
    if (rows.empty()) continue;
    for (const std::vector<double>& row : rows) {
      low = std::min(low, row[0]);
      high = std::max(high, row[0]);
    }
    const std::string block = fmt::format("{}_{}", groups[group].block, index);
    script.data(block, rows);
    plot += fmt::format("{}${} using 1:2:3 with points pointtype {} pointsize 0.55 linewidth 0.8 {} {}", plot.empty() ? "" : ", ", block,
                        groups[group].point_type, groups[group].coloured ? "linecolor palette" : "linecolor rgb '#8A8A8A'",
                        index == 0 && shapes_differ ? fmt::format("title '{}'", groups[group].title) : "notitle");
  }
  script.panel(index, panel.title);
  const auto& correlation = result.correlations[panel.variant];
  if (plot.empty() || !correlation) {
    script.line("set label \"{}\" at graph 0.5, graph 0.5 center textcolor rgb '#555555'", plain("no values in this run"));
    plot = "NaN notitle";
  } else {
    script.value_axis(low, high);
    script.line("set label \"pooled {{/:Italic r}} = {}\" at graph 0.03, graph 0.965 left font ',9'",
                coefficient(correlation->pooled.pearson, correlation->pooled.pearson_naive_p));
    script.line("set label \"within layers {{/:Italic r}} = {}\" at graph 0.03, graph 0.905 left font ',9'",
                coefficient(correlation->within_layers.pearson, correlation->within_layers.pearson_naive_p));
  }
  script.line("set xlabel '{}'", panel.axis).line("plot {}", plot);
}

double largest_mass(const SinkVsK& result) {
  double largest = 0;
  for (const SinkPoint& point : result.points) {
    if (std::isfinite(point.bos_mass)) largest = std::max(largest, point.bos_mass);
  }
  return largest;
}

}  // namespace

Maybe<Figure> sink_vs_k_figure(const SinkVsK& result) {
  if (!result.correlations[0]) return Maybe<Figure>::none(result.correlations[0].reason());
  std::int64_t first_layer = result.points.front().layer, last_layer = first_layer;
  bool shapes_differ = false;
  for (const SinkPoint& point : result.points) {
    first_layer = std::min(first_layer, point.layer);
    last_layer = std::max(last_layer, point.layer);
    shapes_differ = shapes_differ || group_of(point) != 2;
  }
  const double top = std::max(1.22 * largest_mass(result), 0.02);  // room for the coefficients

  PlotScript script;
  script.line("set multiplot layout 1,3 margins 0.065,0.92,{},{} spacing 0.035,0.1", shapes_differ ? 0.24 : 0.165, 0.885);
  script.layer_colours(static_cast<double>(first_layer), static_cast<double>(last_layer)).line("unset colorbox");
  script.line("set yrange [{:.6g}:{:.6g}]", -0.02 * top, top);
  script.line("set key at screen 0.065, screen 0.05 left bottom horizontal Left reverse font ',10' textcolor rgb '#222222'");
  for (const double threshold : {0.05, 0.3}) {
    if (threshold > top) continue;
    script.line("set arrow from graph 0, first {0} to graph 1, first {0} nohead linewidth 0.8 dashtype 3 linecolor rgb '#777777' back",
                threshold);
  }
  for (std::size_t i = 0; i < panels.size(); ++i) {
    script.line("set ylabel '{}'",
                i == 0 ? (result.bos ? "BOS mass (1), second-half queries" : "mass on the first token (1), second-half queries") : "");
    script.line("set format y '{}'", i == 0 ? "%g" : "");
    if (i + 1 == panels.size()) {
      script.line("set colorbox user origin screen 0.933, graph 0 size screen 0.014, graph 1 noborder")
          .line("set cblabel 'layer' offset 0.3,0");
    }
    draw(script, result, panels[i], i, shapes_differ);
  }
  script.line("unset multiplot");
  return Figure{"sink-vs-k", 960, shapes_differ ? 400 : 370, script.text()};
}

}  // namespace gainlens::reports
