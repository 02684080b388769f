#include "analyses/effect_map.h"

#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>

namespace gainlens::analyses {
namespace {

constexpr double not_measured = std::numeric_limits<double>::quiet_NaN();

/// One head of one layer, in an intervention of one write.
struct HeadPlace {
  std::int64_t layer, head;
  std::string title;
};

std::optional<std::int64_t> take_number(std::string_view& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0 || number >= (1 << 20)) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

bool take(std::string_view& text, std::string_view start) {
  if (!text.starts_with(start)) return false;
  text.remove_prefix(start.size());
  return true;
}

/// Reads "blocks.3.attn.hook_z[head=2]=zero"; nothing for other interventions.
std::optional<HeadPlace> head_place(std::string_view text) {
  if (text.find(" + ") != std::string_view::npos || !take(text, "blocks.")) return std::nullopt;
  const auto layer = take_number(text);
  if (!layer || !take(text, ".")) return std::nullopt;
  const std::string site(text.substr(0, text.find('[')));
  text.remove_prefix(site.size());
  if (!take(text, "[head=")) return std::nullopt;
  const auto head = take_number(text);
  if (!head || !take(text, "]=")) return std::nullopt;
  return HeadPlace{*layer, *head, site + " = " + std::string(text)};
}

bool holds_zero(const Maybe<Interval>& interval) {
  return !interval || (interval->low <= 0 && interval->high >= 0);
}

EffectMap empty_map(std::string title, bool heads, const std::set<std::int64_t>& layers, std::int64_t columns) {
  EffectMap map{std::move(title), heads, {layers.begin(), layers.end()}, columns, {}, {}, {}};
  map.values.assign(layers.size() * static_cast<std::size_t>(columns), not_measured);
  map.doubtful.assign(map.values.size(), false);
  map.places.assign(map.values.size(), std::nullopt);
  return map;
}

}  // namespace

std::vector<EffectMap> head_maps(const InterventionEffects& effects) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::pair<HeadPlace, std::size_t>>> by_title;
  for (std::size_t i = 0; i < effects.arms.size(); ++i) {
    const auto place = head_place(effects.arms[i].arm.intervention);
    if (!place) continue;
    if (!by_title.contains(place->title)) order.push_back(place->title);
    by_title[place->title].emplace_back(*place, i);
  }
  std::vector<EffectMap> maps;
  for (const std::string& title : order) {
    const auto& arms = by_title.at(title);
    if (arms.size() < 2) continue;
    std::set<std::int64_t> layers;
    std::int64_t columns = 0;
    for (const auto& [place, index] : arms) {
      layers.insert(place.layer);
      columns = std::max(columns, place.head + 1);
    }
    EffectMap& map = maps.emplace_back(empty_map(title, /*heads=*/true, layers, columns));
    for (const auto& [place, index] : arms) {
      const ArmEffect& arm = effects.arms[index].arm;
      const auto row = std::distance(layers.begin(), layers.find(place.layer));
      const auto cell = static_cast<std::size_t>(row * columns + place.head);
      map.values[cell] = arm.shown().delta;
      map.doubtful[cell] = holds_zero(arm.shown().interval);
      map.places[cell] = index;
    }
  }
  return maps;
}

std::vector<EffectMap> patch_maps(const PatchingEffects& effects, const DirectionResult& direction) {
  std::vector<EffectMap> maps;
  for (const PatchGrid& grid : effects.grids) {
    EffectMap& map =
        maps.emplace_back(empty_map(grid.site, grid.heads, {grid.layers.begin(), grid.layers.end()}, grid.columns));
    for (std::int64_t column = 0; !grid.heads && column < grid.columns; ++column) {
      const auto at = static_cast<std::size_t>(column);
      if (at >= effects.clean.size()) break;  // a position that the prompts do not have
      const std::string &clean = effects.clean[at], &corrupt = effects.corrupt[at];
      map.labels.push_back(clean == corrupt ? clean : clean + " | " + corrupt);
    }
    for (std::size_t cell = 0; cell < grid.cells.size(); ++cell) {
      if (!grid.cells[cell]) continue;
      const PatchResult& result = direction.patches[*grid.cells[cell]];
      map.values[cell] = result.normalised ? *result.normalised : result.effect.metric;
      map.doubtful[cell] = result.changes_nothing();
      map.places[cell] = grid.cells[cell];
    }
  }
  return maps;
}

}  // namespace gainlens::analyses
