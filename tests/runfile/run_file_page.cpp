#include "runfile/run_file_page.h"

#include "runfile/coordinates.h"
#include "runfile/made_run.h"
#include "runfile/schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::testing {
namespace {

using namespace runfile;

std::string listed(const std::vector<Axis>& axes) {
  std::vector<std::string_view> names;
  for (const Axis axis : axes) names.push_back(name_of(axis));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string_view size_of(Axis axis) {
  switch (axis) {
    case Axis::length:
      return "number of lengths";
    case Axis::sample:
      return "`--samples`";
    case Axis::layer:
      return "measured layers";
    case Axis::head:
      return "query heads";
    case Axis::kv_head:
      return "key/value heads";
    case Axis::bin:
      return "64";
    case Axis::key:
      return "8";
    case Axis::rank:
      return "16";
    case Axis::largest:
      return "3";
    case Axis::query:
      return "T";
  }
  return "";
}

std::string_view type_of(const Coordinate& coordinate) {
  const Request request = made_request();
  constexpr std::string_view names[] = {"int8", "int64", "float64", "text"};
  return names[coordinate.values(request, request.lengths).index()];
}

std::string_view runs_with(Presence presence) {
  switch (presence) {
    case Presence::statistics:
      return "all runs";
    case Presence::gate:
      return "models with an output gate";
    case Presence::sink_logits:
      return "models with a sink logit";
    case Presence::nll:
      return "runs with a likelihood";
  }
  return "";
}

std::string_view path_of(Group group) {
  return group == Group::queries ? "queries/<T>" : name_of(group);
}

/// What many datasets of a group share: the axes, the first statistics version, the runs. In words.
using Traits = std::array<std::string, 3>;

Traits traits_of(const DatasetInfo& info) {
  return {"axes " + listed(info.run_axes()), fmt::format("since {}", info.since),
          fmt::format("in {}", runs_with(info.presence))};
}

/// The dataset of this name in a group, null if there is none.
const DatasetInfo* dataset_of(Group group, const std::string& name) {
  for (const DatasetInfo& info : schema()) {
    if (info.group == group && info.name == name) return &info;
  }
  return nullptr;
}

/// The datasets of a group that have a row of their own. A variance stands in the row of its mean.
std::vector<const DatasetInfo*> rows_of(Group group) {
  std::vector<const DatasetInfo*> rows;
  for (const DatasetInfo& info : schema()) {
    const bool variance =
        info.name.ends_with("_var") && dataset_of(group, info.name.substr(0, info.name.size() - 4)) != nullptr;
    if (info.group == group && !variance) rows.push_back(&info);
  }
  return rows;
}

/// For each trait the words that most of the datasets have, the first of equally many.
Traits usual_traits(const std::vector<const DatasetInfo*>& datasets) {
  Traits usual;
  for (std::size_t i = 0; i < usual.size(); ++i) {
    std::ptrdiff_t most = 0;
    for (const DatasetInfo* info : datasets) {
      const std::string words = traits_of(*info)[i];
      const auto count = std::count_if(datasets.begin(), datasets.end(),
                                       [&](const DatasetInfo* other) { return traits_of(*other)[i] == words; });
      if (count > most) usual[i] = words, most = count;
    }
  }
  return usual;
}

/// What the rows without a meaning of their own hold: of a quantity that `/summary` describes.
std::string_view content_of(Group group) {
  if (group == Group::profile) return "Means over each bin of queries, of quantities that `/summary` describes.\n";
  if (group == Group::queries) return "Numbers of each query, of quantities that `/summary` describes.\n";
  return "";
}

}  // namespace

std::string axes_table() {
  std::string table = "| axis | size | unit | value |\n| --- | --- | --- | --- |\n";
  std::vector<Axis> axes = root_axes(made_request());
  axes.push_back(Axis::query);
  for (const Axis axis : axes) {
    const AxisWords words = words_of(axis);
    table += fmt::format("| `{}` | {} | {} | {} |\n", name_of(axis), size_of(axis), words.unit, words.meaning);
  }
  return table;
}

std::string coordinates_table() {
  std::string table =
      "| coordinate | axes | type | unit | meaning | in runs |\n| --- | --- | --- | --- | --- | --- |\n";
  for (const Coordinate& coordinate : coordinates()) {
    table += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", coordinate.name, listed(coordinate.axes),
                         type_of(coordinate), coordinate.unit, coordinate.meaning, coordinate.presence);
  }
  return table;
}

std::string datasets_tables() {
  std::string tables;
  for (const Group group : groups) {
    const std::vector<const DatasetInfo*> shown = rows_of(group);
    const Traits usual = usual_traits(shown);
    if (!tables.empty()) tables += "\n";
    tables += fmt::format("### `/{}`\n\nUsual: {}.\n{}\n", path_of(group), fmt::join(usual, "; "), content_of(group));
    tables += "| dataset | unit | meaning |\n| --- | --- | --- |\n";
    for (const DatasetInfo* info : shown) {
      std::vector<std::string> text;
      const bool told = !content_of(group).empty() && dataset_of(Group::summary, info->name) != nullptr;
      if (!told) text.push_back(info->meaning);
      const Traits traits = traits_of(*info);
      for (std::size_t i = 0; i < traits.size(); ++i) {
        if (traits[i] != usual[i]) text.push_back(traits[i]);
      }
      const DatasetInfo* variance = dataset_of(group, info->name + "_var");
      tables += fmt::format("| `/{}/{}`{} | {}{} | {} |\n", path_of(group), info->name,
                            variance ? fmt::format(", `{}`", variance->name) : "", info->unit,
                            variance ? fmt::format(", {}", variance->unit) : "", fmt::join(text, "; "));
    }
  }
  return tables;
}

}  // namespace gainlens::testing
