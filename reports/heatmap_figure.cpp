#include "core/quantity.h"
#include "reports/figures.h"
#include "reports/plot_script.h"

#include <algorithm>
#include <cmath>

namespace gainlens::reports {
namespace {

using analyses::Heatmap;
using analyses::Maybe;

struct Wording {
  std::string_view quantity;
  std::string_view title;
  std::string_view unit;
};
constexpr Wording wordings[] = {
    {"n_eff", "effective sample size {/:Italic n}_{eff}", "keys"}, {"kalman_gain", "Kalman gain {/:Italic K}", "1"},
    {"kalman_gain_scaled", "Kalman gain of scaled values", "1"},   {"bos_mass", "attention mass on key 0", "1"},
    {"entropy", "entropy of the attention weights", "nats"},
};

const Wording& wording_of(const Heatmap& map) {
  const auto found =
      std::find_if(std::begin(wordings), std::end(wordings), [&](const Wording& w) { return w.quantity == map.quantity.name; });
  ASSERT(found != std::end(wordings), "no wording for {}", map.quantity.name);
  return *found;
}

/// Ticks at most `most` of them, evenly spaced from the first: "'0' 0, '4' 4".
template <typename Label>
std::string ticks(std::size_t count, std::size_t most, Label label) {
  const std::size_t step = (count + most - 1) / most;
  std::string text;
  for (std::size_t i = 0; i < count; i += step) text += fmt::format("{}'{}' {}", i == 0 ? "" : ", ", label(i), i);
  return text;
}

void draw(PlotScript& script, const Heatmap& map, std::size_t index, bool several) {
  std::vector<std::vector<double>> cells, missing, constructed;
  for (std::size_t layer = 0; layer < map.layers.size(); ++layer) {
    for (std::size_t head = 0; head < map.heads; ++head) {
      const double value = map.at(layer, head), x = static_cast<double>(head), y = static_cast<double>(layer);
      if (!std::isfinite(value)) {
        missing.push_back({x, y});
      } else if (map.by_construction[layer]) {
        constructed.push_back({x, y});
      } else {
        cells.push_back({x, y, value});
      }
    }
  }
  const Wording& wording = wording_of(map);
  const std::string title = fmt::format("{}, {{/:Italic T}} = {}", wording.title, format_count(map.length.tokens));
  if (several) {
    script.panel(index, title);
  } else {
    script.line("unset label").line("set label \"{}\" at graph 0, graph 1 left offset 0, 0.9", title);
  }
  script.line("set xrange [-0.5:{}]", static_cast<double>(map.heads) - 0.5)
      .line("set yrange [-0.5:{}]", static_cast<double>(map.layers.size()) - 0.5);
  script.line("set xtics ({})", ticks(map.heads, 16, [](std::size_t head) { return head; }));
  script.line("set ytics ({})", ticks(map.layers.size(), 14, [&](std::size_t layer) { return map.layers[layer]; }));
  script.line("set cblabel 'mean over {} ({})' offset 0.6,0", map.quantity.window, wording.unit);
  std::string plot;
  const auto add = [&](const char* name, const std::vector<std::vector<double>>& rows, std::string_view columns, std::string_view fill) {
    if (rows.empty()) return;
    const std::string block = fmt::format("{}_{}", name, index);
    script.data(block, rows);
    plot += fmt::format("{}${} using {} with boxxyerror {}", plot.empty() ? "" : ", ", block, columns, fill);
  };
  add("cells", cells, "1:2:(0.5):(0.5):3", "fillcolor palette fillstyle solid 1 border linecolor rgb 'white' notitle");
  add("constructed", constructed, "1:2:(0.5):(0.5)",
      "fillcolor rgb '#D9D9D9' fillstyle solid 1 border linecolor rgb 'white' title '0 by construction: key 0 out of the window'");
  add("missing", missing, "1:2:(0.5):(0.5)", "fillcolor rgb '#888888' fillstyle pattern 4 border linecolor rgb 'white' title 'no value'");
  script.line("plot {}", plot);
}

}  // namespace

Maybe<Figure> heatmap_figure(const std::string& name, const std::vector<Maybe<Heatmap>>& maps) {
  std::vector<const Heatmap*> present;
  for (const auto& map : maps) {
    if (map) present.push_back(&*map);
  }
  if (present.empty()) return Maybe<Figure>::none(maps.front().reason());
  const std::size_t layers = present.front()->layers.size();
  const int height = 130 + static_cast<int>(std::clamp<std::size_t>(layers * 13, 210, 480));
  const bool several = present.size() > 1;

  PlotScript script;
  // rows of a fixed height in pixels, whatever the number of layers
  script.line("set multiplot layout 1,{} margins {},{},{:.4f},{:.4f} spacing 0.19,0.1", present.size(), several ? 0.06 : 0.1,
              several ? 0.9 : 0.82, 70.0 / height, 1 - 34.0 / height);
  script.viridis()
      .line("unset grid")
      .line("set border 0")
      .line("set tics out scale 0.3")
      .line("set cbtics out scale 0.4")
      .line("set colorbox noborder");
  script.line("set xlabel 'head'").line("set ylabel 'layer'").line("set key at graph 0, screen 0.02 left bottom Left reverse font ',9'");
  for (std::size_t i = 0; i < present.size(); ++i) draw(script, *present[i], i, several);
  script.line("unset multiplot");
  return Figure{"heatmap-" + name, several ? 960 : 560, height, script.text()};
}

}  // namespace gainlens::reports
