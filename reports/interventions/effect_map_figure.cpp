#include "reports/figures/figure_parts.h"
#include "reports/figures/palette.h"
#include "reports/figures/plot_script.h"
#include "reports/interventions/interventions_report.h"
#include "reports/page/typography.h"

#include <algorithm>
#include <cmath>

namespace gainlens::reports {
namespace {

using analyses::EffectMap;

/// Evenly spaced labels, at most `most`.
std::string ticks(const std::vector<std::int64_t>& labels, std::size_t most) {
  const std::size_t step = (labels.size() + most - 1) / most;
  std::string text;
  for (std::size_t i = 0; i < labels.size(); i += step)
    text += fmt::format("{}'{}' {}", text.empty() ? "" : ", ", labels[i], i);
  return "(" + text + ")";
}

constexpr std::size_t longest_label = 18, max_labels = 40;

/// The tokens of positions, along the axis from below.
std::string token_ticks(const EffectMap& map) {
  const std::size_t step = (map.labels.size() + max_labels - 1) / max_labels;
  std::string text;
  for (std::size_t i = 0; i < map.labels.size(); i += step) {
    text +=
        fmt::format("{}\"{} {}\" {}", text.empty() ? "" : ", ", plain(printable(map.labels[i], longest_label)), i, i);
  }
  return "rotate by 90 right (" + text + ")";
}

/// Inches that the tokens below a panel take.
double label_room(std::span<const EffectMap> maps) {
  constexpr double character_width = 0.055;
  std::size_t longest = 0;
  for (const EffectMap& map : maps) {
    for (const std::string& label : map.labels) longest = std::max(longest, std::min(label.size(), longest_label));
  }
  return longest == 0 ? 0 : character_width * static_cast<double>(longest + 3);
}

void draw(PlotScript& script, const EffectMap& map, std::size_t index, double largest, const std::string& doubtful) {
  Rows cells, hatched, missing;
  for (std::size_t layer = 0; layer < map.layers.size(); ++layer) {
    for (std::int64_t column = 0; column < map.columns; ++column) {
      const double x = static_cast<double>(column), y = static_cast<double>(layer), value = map.at(layer, column);
      if (!std::isfinite(value)) {
        missing.push_back({x, y});
        continue;
      }
      cells.push_back({x, y, value});
      if (map.doubtful_at(layer, column)) hatched.push_back({x, y});
    }
  }
  script.panel(index, plain(map.title));
  if (largest > 0) script.line("set cbrange [{:.9g}:{:.9g}]", -largest, largest);
  script.line("set xlabel '{}' offset 0,0.5", map.heads ? "head" : "position");
  script.line("set xrange [-0.5:{}]", static_cast<double>(map.columns) - 0.5)
      .line("set yrange [-0.5:{}]", static_cast<double>(map.layers.size()) - 0.5);
  std::vector<std::int64_t> columns(static_cast<std::size_t>(map.columns));
  for (std::size_t i = 0; i < columns.size(); ++i) columns[i] = static_cast<std::int64_t>(i);
  script.line("set xtics {}", map.labels.empty() ? "norotate autojustify " + ticks(columns, 12) : token_ticks(map))
      .line("set ytics {}", ticks(map.layers, 14));
  std::string plot;
  const auto add = [&](const char* name, const Rows& rows, std::string_view use) {
    if (rows.empty()) return;
    const std::string block = fmt::format("{}_{}", name, index);
    script.data(block, rows);
    plot += fmt::format("{}${} using {}", plot.empty() ? "" : ", ", block, use);
  };
  add("cells", cells,
      "1:2:(0.5):(0.5):3 with boxxyerror fillcolor palette fillstyle solid 1 border linecolor rgb '#FFFFFF' notitle");
  add("missing", missing,
      "1:2:(0.5):(0.5) with boxxyerror fillcolor rgb '#D9D9D9' fillstyle solid 1 border linecolor rgb '#FFFFFF' title "
      "'not measured'");
  add("hatched", hatched,
      fmt::format("1:2:(0.5):(0.5) with boxxyerror fillcolor rgb '#7A7A7A' fillstyle transparent pattern 4 noborder "
                  "title '{}'",
                  doubtful));
  script.line("plot {}", plot);
}

}  // namespace

double largest_effect(std::span<const EffectMap> maps, bool heads) {
  double largest = 0;
  for (const EffectMap& map : maps) {
    if (map.heads != heads) continue;
    for (const double value : map.values) {
      if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    }
  }
  return largest;
}

Maybe<Figure> effect_map_figure(const std::string& name, std::span<const EffectMap> maps, const std::string& quantity,
                                const std::string& doubtful) {
  if (maps.empty()) return Maybe<Figure>::none("no two interventions are of single heads or positions of one site");
  if (maps.size() > max_panels)
    return Maybe<Figure>::none(fmt::format("{} maps; {} panels fit one figure", maps.size(), max_panels));
  const double by_heads = largest_effect(maps, true), by_positions = largest_effect(maps, false);
  std::size_t max_layers = 0;
  for (const EffectMap& map : maps) max_layers = std::max(max_layers, map.layers.size());
  if (by_heads == 0 && by_positions == 0) return Maybe<Figure>::none("all effects are 0");
  const std::size_t columns = std::min<std::size_t>(maps.size(), 2), rows = (maps.size() + columns - 1) / columns;
  PanelGrid grid{columns > 1 ? page_width : column_width, 0};
  grid.columns = static_cast<int>(columns);
  grid.rows = static_cast<int>(rows);
  grid.left = 0.4;
  grid.right = 0.85;
  grid.across = 1.25;
  const double labels = label_room(maps);
  grid.bottom = 0.6 + labels;
  grid.down = 0.85 + labels;
  const double panel = std::clamp(0.125 * static_cast<double>(max_layers), 1.1, 4.2);
  grid.height = grid.top + grid.bottom + panel * static_cast<double>(rows) + grid.down * static_cast<double>(rows - 1);
  PanelFigure script(grid);
  script.line("{}", palette_command(effect_colours))
      .line("unset grid")
      .line("set border 0")
      .line("set tics out scale 0.2")
      .line("set cbtics out scale 0.2 offset -0.6,0")
      .line("set colorbox noborder")
      .line("set cblabel \"{}\" offset 0.8,0", plain(quantity));
  script.line("set ylabel 'layer' offset 1.4,0");
  script.line("set key at graph 0, graph {:.5f} left center Left reverse", -(0.46 + labels) / grid.panel_height());
  for (std::size_t i = 0; i < maps.size(); ++i)
    draw(script, maps[i], i, maps[i].heads ? by_heads : by_positions, doubtful);
  return script.figure(name);
}

}  // namespace gainlens::reports
