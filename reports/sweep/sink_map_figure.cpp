#include "reports/sweep/sink_map_figure.h"

#include "analyses/sink_vs_k.h"
#include "reports/figures/figure_parts.h"
#include "reports/sweep/layer_ticks.h"
#include "reports/sweep/run_words.h"
#include "reports/sweep/sink_map.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <tuple>

namespace gainlens::reports {
namespace {

/// The heads of a map by how they are drawn.
struct MapRows {
  Rows valued, missing, hidden, bos, elsewhere, early;
};

MapRows rows_of_map(const SinkMap& map) {
  MapRows rows;
  for (const MappedHead& head : map.heads) {
    const double x = static_cast<double>(head.head), y = static_cast<double>(head.layer_position);
    if (head.hidden) {
      rows.hidden.push_back({x, y});
    } else if (!std::isfinite(head.mass.value)) {
      rows.missing.push_back({x, y});
    } else {
      rows.valued.push_back({x, y, head.mass.value});
    }
    if (head.is_sink) (head.early ? rows.early : head.elsewhere ? rows.elsewhere : rows.bos).push_back({x, y});
  }
  return rows;
}

/// The legend below the panels: what occurs in some of them.
std::vector<LegendEntry> legend_of_maps(const std::vector<MapRows>& maps) {
  std::vector<LegendEntry> legend;
  const auto any = [&](Rows MapRows::*rows) {
    return std::any_of(maps.begin(), maps.end(), [&](const MapRows& map) { return !(map.*rows).empty(); });
  };
  if (any(&MapRows::bos)) legend.push_back({"sink: BOS", colour::vermillion, 7});
  if (any(&MapRows::elsewhere)) legend.push_back({"sink: another token", colour::vermillion, 6});
  if (any(&MapRows::early)) legend.push_back({"sink for early queries only", colour::vermillion, 2});
  if (any(&MapRows::hidden)) legend.push_back({"BOS out of sight: not measured", "#D9D9D9", 5});
  if (any(&MapRows::missing)) legend.push_back({"no value", colour::grey, 4});
  return legend;
}

std::string plot_map(PlotScript& script, const MapRows& rows, std::size_t index, double row_height) {
  std::string plot;
  const auto add = [&](const char* name, const Rows& data, const std::string& how) {
    if (data.empty()) return;
    const std::string block = fmt::format("{}_{}", name, index);
    script.data(block, data);
    plot += fmt::format("{}${} using {} notitle", plot.empty() ? "" : ", ", block, how);
  };
  const std::string box = "1:2:(0.5):(0.5)";
  const double size = std::clamp(4.5 * row_height, 0.15, 0.6);
  add("cells", rows.valued,
      box + ":(100*$3) with boxxyerror fillcolor palette fillstyle solid 1 border linecolor rgb '#FFFFFF'");
  add("hidden", rows.hidden,
      box + " with boxxyerror fillcolor rgb '#D9D9D9' fillstyle solid 1 border linecolor rgb '#FFFFFF'");
  add("missing", rows.missing,
      box + " with boxxyerror fillcolor rgb '#7A7A7A' fillstyle pattern 4 border linecolor rgb '#7A7A7A'");
  add("bos", rows.bos,
      fmt::format("1:2 with points pointtype 7 pointsize {:.3f} linecolor rgb '{}'", size, colour::vermillion));
  // Rings and crosses on a white ground are seen on every colour.
  add("rings", rows.elsewhere,
      fmt::format("1:2 with points pointtype 7 pointsize {:.3f} linecolor rgb '#FFFFFF'", size));
  add("elsewhere", rows.elsewhere,
      fmt::format("1:2 with points pointtype 6 pointsize {:.3f} linewidth 1.6 linecolor rgb '{}'", size,
                  colour::vermillion));
  for (const auto& [name, width, line] :
       {std::tuple{"halos", 5.0, std::string_view("#FFFFFF")}, std::tuple{"early", 2.0, colour::vermillion}}) {
    add(name, rows.early,
        fmt::format("1:2 with points pointtype 2 pointsize {:.3f} linewidth {} linecolor rgb '{}'", 0.8 * size, width,
                    line));
  }
  return plot;
}

}  // namespace

Maybe<Figure> sink_map_figure(Runs runs) {
  std::vector<MapRows> maps;
  std::vector<const SweepRun*> mapped;
  std::size_t max_layers = 0;
  double largest = 0;
  for (const SweepRun& run : runs) {
    const auto& map = run.of(sink_map);
    if (!map) continue;
    maps.push_back(rows_of_map(*map));
    mapped.push_back(&run);
    max_layers = std::max(max_layers, run.reader().layers().size());
    for (const std::vector<double>& cell : maps.back().valued) largest = std::max(largest, cell[2]);
  }
  if (mapped.empty()) return Maybe<Figure>::none(runs.front().of(sink_map).reason());

  const bool one = mapped.size() == 1;
  const double width = one ? column_width : page_width;
  PanelGrid grid{width, 0};
  grid.columns = static_cast<int>(std::min<std::size_t>(mapped.size(), 3));
  grid.rows = static_cast<int>((mapped.size() + 2) / 3);
  grid.left = 0.4;
  grid.right = 0.52;
  grid.across = 0.95;
  grid.bottom = 0.4;
  const double panel = std::clamp(0.125 * static_cast<double>(max_layers), 1.1, 2.5);  // it has to fit a first screen
  grid.height = grid.top + grid.bottom + panel * grid.rows + grid.down * (grid.rows - 1);

  PanelFigure script(grid, legend_of_maps(maps));
  script.viridis()
      .line("unset grid")
      .line("set border 0")
      .line("set tics out scale 0.2")
      .line("set cbtics autofreq out scale 0.2 offset -0.6,0")
      .line("set cbrange [0:{:.9g}]", 100 * std::max(largest, analyses::sink_thresholds[0]))  // no sink: no bright cell
      .line("set format cb '%g%%'")
      .line("set colorbox noborder")
      .line("unset key");
  script.line("set xlabel 'head' offset 0,0.5").line("set ylabel 'layer' offset 1.4,0");
  for (std::size_t i = 0; i < mapped.size(); ++i) {
    const SinkMap& map = *mapped[i]->of(sink_map);
    const std::string what = map.everywhere ? "sink mass" : "BOS mass";
    if (one) {
      script.line("unset label").line("set label \"{}\" at graph 0, graph 1 left offset 0, 0.8", what);
      script.draw_legend();
    } else {
      script.panel(i, fmt::format("{}, {}", what, plain(mapped[i]->label())));
    }
    const auto heads = static_cast<std::size_t>(mapped[i]->reader().heads());
    const auto layers = mapped[i]->reader().layers().size();
    script.line("set xrange [-0.5:{}]", static_cast<double>(heads) - 0.5)
        .line("set yrange [-0.5:{}]", static_cast<double>(layers) - 0.5);
    script.line("set xtics ({})", even_ticks(heads, 16, [](std::size_t head) { return fmt::format("{}", head); }));
    script.line("set ytics ({})", layer_ticks(*mapped[i], static_cast<std::size_t>(panel / 0.1)));
    script.line("plot {}", plot_map(script, maps[i], i, panel / static_cast<double>(layers)));
  }
  return script.figure("sink-map");
}

}  // namespace gainlens::reports
