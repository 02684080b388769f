#include "analyses/heatmap.h"

#include <algorithm>
#include <cmath>

namespace gainlens::analyses {
Maybe<Heatmap> heatmap(const runfile::RunReader& reader, std::string_view name) {
  const runfile::HeadQuantity& quantity = runfile::head_quantity(name);
  const auto cells = Cells::read(reader, fmt::format("summary/{}", quantity.name));
  if (!cells) return Maybe<Heatmap>::none(cells.reason());
  Heatmap map{quantity, usable_lengths(reader).back(), reader.layers(), cells->heads(), {}, {}, 0};
  for (const std::size_t layer : all_layers(reader)) {
    for (std::size_t head = 0; head < map.heads; ++head)
      map.values.push_back(mean_over_samples(*cells, map.length, layer, head, 0, map.left_out));
    map.by_construction.push_back(quantity.name == "bos_mass" &&
                                  first_key_visibility(reader.attention()[layer], map.length.tokens) ==
                                      FirstKey::hidden);
  }
  if (std::none_of(map.values.begin(), map.values.end(), [](double value) { return std::isfinite(value); })) {
    return Maybe<Heatmap>::none(fmt::format("summary/{} has no value at the longest length", quantity.name));
  }
  return map;
}

OrderedJson to_json(const Heatmap& map) {
  OrderedJson json;
  json["quantity"] = map.quantity.name;
  json["window"] = map.quantity.averaged_over();
  json["tokens"] = map.length.tokens;
  json["chunks"] = map.length.samples.size();
  json["layers"] = map.layers;
  json["values"] = OrderedJson::array();  // NaN is written as null
  for (std::size_t layer = 0; layer < map.layers.size(); ++layer) {
    OrderedJson row = OrderedJson::array();
    for (std::size_t head = 0; head < map.heads; ++head) row.push_back(map.at(layer, head));
    json["values"].push_back(std::move(row));
  }
  json["values_left_out"] = map.left_out;
  return json;
}

}  // namespace gainlens::analyses
