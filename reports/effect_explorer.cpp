#include "reports/effect_explorer.h"

#include "core/check.h"
#include "reports/figures/palette.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace gainlens::reports {

EffectExplorer::EffectExplorer() {
  data_.words["colours"] = effect_colours;
  data_.words["maps"] = OrderedJson::array();
}

void EffectExplorer::add(const std::string& title, const analyses::EffectMap& map, double largest,
                         const std::function<std::string(const std::string& where, std::size_t place)>& say) {
  OrderedJson cells = OrderedJson::array(), crossed = OrderedJson::array();
  const auto columns = static_cast<std::size_t>(map.columns);
  std::size_t chosen = 0;
  for (std::size_t cell = 0; cell < map.values.size(); ++cell) {
    const std::string where =
        fmt::format("Layer {}, {} {}", map.layers[cell / columns], map.heads ? "head" : "position", cell % columns);
    cells.push_back(map.places[cell] ? say(where, *map.places[cell]) : where + ": not measured.");
    if (map.doubtful[cell]) crossed.push_back(cell);
    if (std::abs(map.values[cell]) > std::abs(map.values[chosen]) || std::isnan(map.values[chosen])) chosen = cell;
  }
  data_.words["maps"].push_back({{"title", title},
                                 {"rows", map.layers},
                                 {"columns", map.columns},
                                 {"axes", map.heads ? "layer ↑ head →" : "layer ↑ position →"},
                                 {"range", {-largest, largest}},
                                 {"chosen", chosen},
                                 {"crossed", crossed},
                                 {"from", data_.add(map.values)},
                                 {"cells", cells}});
}

void EffectExplorer::add(const NamedEffects& effects) {
  constexpr std::size_t letter_width = 7, between = 12, most = 170;  // pixels
  const std::size_t rows = effects.rows.size(), columns = effects.columns.size();
  ASSERT(rows * columns == effects.values.size() && rows * columns == effects.cells.size() && !effects.values.empty(),
         "effect explorer: {} rows and {} columns of {} cells", rows, columns, effects.values.size());
  // The script counts rows from below.
  const auto turned = [&](std::size_t cell) { return (rows - 1 - cell / columns) * columns + cell % columns; };
  std::vector<double> values(effects.values.size());
  std::vector<std::string> cells(effects.cells.size());
  std::size_t chosen = 0, longest = 0;
  double largest = 0;
  for (std::size_t cell = 0; cell < values.size(); ++cell) {
    values[turned(cell)] = effects.values[cell];
    cells[turned(cell)] = effects.cells[cell];
    if (!(std::abs(effects.values[cell]) > largest)) continue;
    largest = std::abs(effects.values[cell]);
    chosen = turned(cell);
  }
  OrderedJson crossed = OrderedJson::array();
  for (const std::size_t cell : effects.doubtful) crossed.push_back(turned(cell));
  for (const std::string& row : effects.rows) longest = std::max(longest, row.size());
  data_.words["maps"].push_back({{"title", effects.title},
                                 {"rows", std::vector<std::string>(effects.rows.rbegin(), effects.rows.rend())},
                                 {"columns", columns},
                                 {"names", effects.columns},
                                 {"left", std::min(most, letter_width * longest + between)},
                                 {"axes", effects.axes},
                                 {"range", {-largest, largest}},
                                 {"chosen", chosen},
                                 {"crossed", crossed},
                                 {"from", data_.add(values)},
                                 {"cells", cells}});
}

std::vector<Block> EffectExplorer::blocks(const std::string& doubtful) const {
  if (data_.words["maps"].empty()) return {};
  return {paragraph(
              fmt::format("Crossed cells: {}. The framed cell is the largest; grey ones were not measured.", doubtful)),
          Html{embedded_part("effects", data_)}};
}

}  // namespace gainlens::reports
