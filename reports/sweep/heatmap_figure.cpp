#include "reports/sweep/heatmap_figure.h"

#include "core/quantity.h"
#include "reports/figures/figure_parts.h"
#include "reports/page/typography.h"
#include "reports/sweep/layer_ticks.h"
#include "reports/sweep/run_words.h"
#include "reports/sweep/sections.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace gainlens::reports {
namespace {

using analyses::Heatmap;

std::string title_of(const Heatmap& map) {
  const runfile::HeadQuantity& quantity = map.quantity;
  const std::string label(quantity.label);
  return to_plot(quantity.unit == "1" ? label : fmt::format("{} ({})", label, quantity.unit));
}

/// Smallest and largest drawn value of one quantity over the runs, which share its colours.
struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  /// Whether the scale is logarithmic. Over more than a decade a linear scale would give most heads one colour.
  bool logarithmic() const { return low > 0 && high >= 10 * low; }
};

/// 1, 2 and 5 of each decade; of many decades the powers of ten.
std::string decade_ticks(const Range& range) {
  const bool all = range.high < 300 * range.low;
  std::string text;
  const int first = static_cast<int>(std::floor(std::log10(range.low)));
  const int last = static_cast<int>(std::floor(std::log10(range.high)));
  for (int decade = first; decade <= last; ++decade) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      const double tick = digit * std::pow(10, decade);
      if (tick < range.low || tick > range.high || (!all && digit != 1)) continue;
      text += fmt::format("{}'{:.3g}' {:.9g}", text.empty() ? "" : ", ", tick, tick);
    }
  }
  return "(" + text + ")";
}

/// One map among the panels.
struct MapPanel {
  const Heatmap* map;
  const SweepRun* run;
  std::string label;  ///< of the run; empty where there is one
};

/// The cells of a map by how they are drawn.
struct CellRows {
  Rows valued, missing, constructed;
};

CellRows cells_of(const Heatmap& map) {
  CellRows cells;
  for (std::size_t layer = 0; layer < map.layers.size(); ++layer) {
    for (std::size_t head = 0; head < map.heads; ++head) {
      const double value = map.at(layer, head), x = static_cast<double>(head), y = static_cast<double>(layer);
      if (!std::isfinite(value)) {
        cells.missing.push_back({x, y});
      } else if (map.by_construction[layer]) {
        cells.constructed.push_back({x, y});
      } else {
        cells.valued.push_back({x, y, value});
      }
    }
  }
  return cells;
}

std::map<std::string_view, Range> ranges_of(const std::vector<MapPanel>& panels) {
  std::map<std::string_view, Range> ranges;
  for (const MapPanel& panel : panels) {
    Range& range = ranges[panel.map->quantity.name];
    for (const std::vector<double>& cell : cells_of(*panel.map).valued) {
      range.low = std::min(range.low, cell[2]);
      range.high = std::max(range.high, cell[2]);
    }
  }
  return ranges;
}

void draw(PlotScript& script, const MapPanel& panel, std::size_t index, const Range& range, bool alone) {
  const Heatmap& map = *panel.map;
  const CellRows cells = cells_of(map);
  const std::string title = fmt::format("{}{}", title_of(map), panel.label.empty() ? "" : ", " + plain(panel.label));
  if (alone) {
    script.line("unset label").line("set label \"{}\" at graph 0, graph 1 left offset 0, 0.8", title);
  } else {
    script.panel(index, title);
  }
  script.line("set xrange [-0.5:{}]", static_cast<double>(map.heads) - 0.5)
      .line("set yrange [-0.5:{}]", static_cast<double>(map.layers.size()) - 0.5);
  script.line("set xtics ({})", even_ticks(map.heads, 16, [](std::size_t head) { return fmt::format("{}", head); }));
  script.line("set ytics ({})", layer_ticks(*panel.run, global_layers(*panel.run).empty() ? 14 : 36));
  script.line("{} logscale cb", range.logarithmic() ? "set" : "unset");
  script.line("set cbtics {} out scale 0.2 offset -0.6,0", range.logarithmic() ? decade_ticks(range) : "autofreq");
  script.line("set cbrange [{}]", range.low < range.high ? fmt::format("{:.9g}:{:.9g}", range.low, range.high) : "*:*");
  std::string plot;
  const auto add = [&](const char* name, const Rows& rows, std::string_view columns, std::string_view fill) {
    if (rows.empty()) return;
    const std::string block = fmt::format("{}_{}", name, index);
    script.data(block, rows);
    plot += fmt::format("{}${} using {} with boxxyerror {}", plot.empty() ? "" : ", ", block, columns, fill);
  };
  add("cells", cells.valued, "1:2:(0.5):(0.5):3",
      "fillcolor palette fillstyle solid 1 border linecolor rgb '#FFFFFF' notitle");
  add("constructed", cells.constructed, "1:2:(0.5):(0.5)",
      "fillcolor rgb '#D9D9D9' fillstyle solid 1 border linecolor rgb '#FFFFFF' title '0 by construction'");
  add("missing", cells.missing, "1:2:(0.5):(0.5)",
      "fillcolor rgb '#7A7A7A' fillstyle pattern 4 border linecolor rgb '#7A7A7A' title 'no value'");
  script.line("plot {}", plot);
}

/// The panels of a figure: of one run its maps side by side; of several the runs side by side, or below each other
/// where each has two maps.
PanelGrid grid_of(const std::vector<MapPanel>& panels, std::size_t maps) {
  std::size_t max_layers = 0;
  bool key = false;
  for (const MapPanel& panel : panels) {
    max_layers = std::max(max_layers, panel.map->layers.size());
    const CellRows cells = cells_of(*panel.map);
    key = key || !cells.missing.empty() || !cells.constructed.empty();
  }
  const std::size_t columns = maps > 1 ? maps : std::min<std::size_t>(panels.size(), 3);
  const std::size_t rows = (panels.size() + columns - 1) / columns;
  PanelGrid grid{columns > 1 ? page_width : column_width, 0};
  grid.columns = static_cast<int>(columns);
  grid.rows = static_cast<int>(rows);
  grid.left = 0.4;
  grid.right = 0.52;
  grid.across = 0.95;
  grid.bottom = key ? 0.55 : 0.38;
  grid.down = key ? 0.8 : 0.65;
  const double panel = std::clamp(0.125 * static_cast<double>(max_layers), 1.1, 4.2);  // every layer a row of its own
  grid.height = grid.top + grid.bottom + panel * static_cast<double>(rows) + grid.down * static_cast<double>(rows - 1);
  return grid;
}

/// The run's maps of the group; none where it has no such group.
std::span<const HeatmapGroup::Map> maps_of(const SweepRun& run, const std::string& name) {
  for (const HeatmapGroup& group : run.of(heatmap_groups)) {
    if (group.name == name) return group.maps;
  }
  return {};
}

std::string first_reason(Runs runs, const std::string& group) {
  for (const auto& [quantity, map] : maps_of(runs.front(), group)) {
    if (!map) return map.reason();
  }
  return "no run has a value of it";
}

}  // namespace

Maybe<Figure> heatmap_figure(Runs runs, const std::string& group) {
  std::vector<MapPanel> panels;
  std::size_t maps = 0;
  for (const SweepRun& run : runs) {
    std::size_t present = 0;
    for (const auto& [quantity, map] : maps_of(run, group)) {
      // K itself shows the scale of each layer's values. It is drawn where the run has no scaled K.
      const bool better =
          quantity == "kalman_gain" &&
          std::any_of(maps_of(run, group).begin(), maps_of(run, group).end(), [](const HeatmapGroup::Map& other) {
            return other.quantity == "kalman_gain_scaled" && other.map;
          });
      if (!map || better) continue;
      panels.push_back({&*map, &run, runs.size() > 1 ? run.label() : ""});
      ++present;
    }
    maps = std::max(maps, present);
  }
  if (panels.empty()) return Maybe<Figure>::none(first_reason(runs, group));
  const std::map<std::string_view, Range> ranges = ranges_of(panels);

  const PanelGrid grid = grid_of(panels, maps);
  PanelFigure script(grid);
  script.viridis()
      .line("unset grid")
      .line("set border 0")
      .line("set tics out scale 0.2")
      .line("set cbtics out scale 0.2 offset -0.6,0")
      .line("set colorbox noborder");
  script.line("set xlabel 'head' offset 0,0.5").line("set ylabel 'layer' offset 1.4,0");
  script.line("set key at graph 0, graph {:.5f} left center Left reverse",
              -0.46 / grid.panel_height());  // below the x axis
  for (std::size_t i = 0; i < panels.size(); ++i)
    draw(script, panels[i], i, ranges.at(panels[i].map->quantity.name), panels.size() == 1);
  return script.figure("heatmap-" + group);
}

}  // namespace gainlens::reports
