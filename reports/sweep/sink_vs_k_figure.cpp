#include "reports/sweep/sink_vs_k_figure.h"

#include "analyses/sink_vs_k.h"
#include "reports/figures/figure_parts.h"
#include "reports/sweep/run_words.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

namespace gainlens::reports {
namespace {

using analyses::Correlation, analyses::SinkPoint, analyses::SinkVsK;

struct Panel {
  std::size_t variant;  // of analyses::gain_variants
  std::string_view title;
  std::string_view axis;
};
constexpr std::array<Panel, 3> panels = {{
    {0, "{/:Italic K}", "{/:Italic K}, last quarter"},
    {2, "{/:Italic K} of scaled values", "scaled {/:Italic K}, last quarter"},
    {4, "{/:Italic K} without BOS", "{/:Italic K} of other keys, second half"},
}};

/// How points are drawn: one shape for each group.
struct Group {
  std::string_view block;
  std::string_view title;
  int point_type;
  bool coloured;
};
constexpr std::array<Group, 3> groups = {{
    {"apart", "excluded: BOS outside the window", 6, false},  // drawn first: it must not cover the others
    {"windowed", "windowed attention", 9, true},
    {"full", "global attention", 7, true},
}};

std::size_t group_of(const SinkPoint& point) {
  if (point.set_apart) return 0;
  return point.attention == "global" ? 2 : 1;
}

/// Heads that cannot see BOS have a BOS mass of 0 whatever their K: they say nothing, and would stretch the axis of the
/// others. They are drawn where there are no others.
bool is_drawn(const SinkVsK& result, std::size_t group) {
  return groups[group].coloured || std::all_of(result.points.begin(), result.points.end(),
                                               [](const SinkPoint& point) { return group_of(point) == 0; });
}

/// The layers whose points are coloured, or all if none is.
std::vector<std::int64_t> coloured_layers(const SinkVsK& result) {
  std::set<std::int64_t> coloured, all;
  for (const SinkPoint& point : result.points) {
    all.insert(point.layer);
    if (groups[group_of(point)].coloured) coloured.insert(point.layer);
  }
  const auto& chosen = coloured.empty() ? all : coloured;
  return {chosen.begin(), chosen.end()};
}

Rows rows_of(const SinkVsK& result, std::size_t variant, std::size_t group) {
  Rows rows;
  const std::vector<std::int64_t> layers = coloured_layers(result);
  for (const SinkPoint& point : result.points) {
    if (group_of(point) != group || !std::isfinite(point.bos_mass) || !std::isfinite(point.gain[variant])) continue;
    rows.push_back({point.gain[variant], point.bos_mass, layer_colour(layers, point.layer)});
  }
  return rows;
}

std::string coefficient(const Measured& r) {
  return r ? fmt::format("{:+.2f}", *r) : "none";
}

/// Points of one run, coloured by layer over a rim that shows the palest and the darkest on any ground.
std::string layer_points(const std::string& block, const Group& group) {
  if (!group.coloured) {
    return fmt::format("${} using 1:2 with points pointtype {} pointsize 0.4 linewidth 0.7 linecolor rgb '{}' notitle",
                       block, group.point_type, colour::grey);
  }
  return fmt::format(
      "${0} using 1:2 with points pointtype {1} pointsize 0.5 linecolor rgb '{2}' notitle, "
      "${0} using 1:2:3 with points pointtype {1} pointsize 0.37 linecolor palette notitle",
      block, group.point_type, colour::grey);
}

/// Points of one of several runs: its colour and marker; hollow where excluded.
std::string run_points(const std::string& block, std::size_t group, std::size_t run) {
  const RunStyle& style = run_style(run);
  return fmt::format("${} using 1:2 with points pointtype {} pointsize 0.38 linewidth 0.7 linecolor rgb '{}' notitle",
                     block, group == 0 ? style.hollow_marker : style.marker, style.colour);
}

void label_correlations(PlotScript& script, const analyses::SinkCorrelation& correlation) {
  script.line("set label \"{{/:Italic r}} = {} pooled\" at graph 0.03, graph 0.94 left",
              coefficient(correlation.pooled.pearson));
  script.line("set label \"{{/:Italic r}} = {} within layers\" at graph 0.03, graph 0.85 left",
              coefficient(correlation.within_layers.pearson));
}

void draw(PanelFigure& script, Runs runs, const Panel& panel, std::size_t index) {
  std::string plot;
  Extent extent;
  bool any = false;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    for (std::size_t group = 0; group < groups.size(); ++group) {
      const SinkVsK& result = runs[run].of(analyses::sink_vs_k);
      const Rows rows = rows_of(result, panel.variant, group);
      if (rows.empty() || !is_drawn(result, group)) continue;
      any = true;
      for (const std::vector<double>& row : rows) extent.add(row[0]);
      const std::string block = fmt::format("{}_{}_{}", groups[group].block, index, run);
      script.data(block, rows);
      plot += (runs.size() > 1 ? run_points(block, group, run) : layer_points(block, groups[group])) + ", ";
    }
  }
  script.panel(index, panel.title);
  if (any) {
    plot.resize(plot.size() - 2);
    script.value_axis(extent.low, extent.high);
    const auto& correlation = runs.front().of(analyses::sink_vs_k).correlations[panel.variant];
    if (runs.size() == 1 && correlation) label_correlations(script, *correlation);
  } else {
    script.line("set label \"{}\" at graph 0.5, graph 0.5 center textcolor rgb '{}'", plain("no values in this run"),
                colour::grey);
    plot += "NaN notitle";
  }
  // Above the bar: beside it, the label covers the bar's numbers.
  if (runs.size() == 1 && index + 1 == panels.size())
    script.line("set label 'layer' at screen 0.935, graph 1 left offset 0,0.8");
  script.line("set xlabel '{}' offset 0,0.5", panel.axis).line("plot {}", plot);
}

double largest_mass(Runs runs) {
  double largest = 0;
  for (const SweepRun& run : runs) {
    for (const SinkPoint& point : run.of(analyses::sink_vs_k).points) {
      if (std::isfinite(point.bos_mass)) largest = std::max(largest, point.bos_mass);
    }
  }
  return largest;
}

/// The shapes that are drawn; none where there is one.
std::vector<LegendEntry> name_shapes(const SinkVsK& result) {
  std::vector<LegendEntry> entries;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    const bool occurs = std::any_of(result.points.begin(), result.points.end(),
                                    [&](const SinkPoint& point) { return group_of(point) == group; });
    if (occurs && is_drawn(result, group))
      entries.push_back({std::string(groups[group].title), colour::grey, groups[group].point_type, 0});
  }
  return entries.size() > 1 || (entries.size() == 1 && entries.front().marker == groups[0].point_type)
             ? entries
             : std::vector<LegendEntry>{};
}

bool any_bos(Runs runs) {
  return std::any_of(runs.begin(), runs.end(), [](const SweepRun& run) { return run.of(analyses::sink_vs_k).bos; });
}

/// Where some head reaches them.
void threshold_lines(PlotScript& script, double largest) {
  for (const double threshold : analyses::sink_thresholds) {
    if (threshold > largest) continue;
    script.line(
        "set arrow from graph 0, first {0} to graph 1, first {0} nohead linewidth 0.7 dashtype 3 linecolor rgb '{1}' "
        "back",
        threshold, colour::grey);
  }
}

}  // namespace

Maybe<Figure> sink_vs_k_figure(Runs runs) {
  const auto drawable = [](const SweepRun& run) {
    return static_cast<bool>(run.of(analyses::sink_vs_k).correlations[0]);
  };
  if (std::none_of(runs.begin(), runs.end(), drawable))
    return Maybe<Figure>::none(runs.front().of(analyses::sink_vs_k).correlations[0].reason());
  const bool one = runs.size() == 1;
  const SinkVsK& first = runs.front().of(analyses::sink_vs_k);
  const std::vector<LegendEntry> legend = one ? name_shapes(first) : name_runs(labels_of(runs), LegendMark::marker);
  const double top = std::max((one ? 1.3 : 1.05) * largest_mass(runs), 0.02);  // room for the coefficients

  PanelGrid grid{page_width, 2.3};
  grid.columns = static_cast<int>(panels.size());
  grid.right = one ? 0.55 : 0.12;
  grid.across = 0.2;
  grid.left = 0.6;  // tick labels and the axis label
  PanelFigure script(grid, legend);
  script.layer_colours(coloured_layers(first)).line("unset colorbox");
  script.y_axis(0, top, 0).line("unset key");
  threshold_lines(script, largest_mass(runs));
  for (std::size_t i = 0; i < panels.size(); ++i) {
    script.line("set ylabel '{}' offset 1.6,0", i == 0 ? (any_bos(runs) ? "BOS mass" : "mass on the first token") : "");
    script.line("set format y '{}'", i == 0 ? "%g" : "");
    if (one && i + 1 == panels.size()) {
      script.line("set colorbox user origin screen 0.935, graph 0 size screen 0.012, graph 1 noborder");
    }
    draw(script, runs, panels[i], i);
  }
  return script.figure("sink-vs-k");
}

}  // namespace gainlens::reports
