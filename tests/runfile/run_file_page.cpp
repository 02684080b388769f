#include "runfile/run_file_page.h"

#include "runfile/coordinates.h"
#include "runfile/made_run.h"
#include "runfile/schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>
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
      return "all";
    case Presence::gate:
      return "models with an output gate";
    case Presence::sink_logits:
      return "models with a sink logit";
    case Presence::nll:
      return "with a likelihood";
  }
  return "";
}

std::string_view path_of(Group group) {
  return group == Group::queries ? "queries/<T>" : name_of(group);
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
    if (!tables.empty()) tables += "\n";
    tables += fmt::format("### `/{}`\n\n", path_of(group));
    tables += "| dataset | axes | unit | meaning | since | in runs |\n| --- | --- | --- | --- | --- | --- |\n";
    for (const DatasetInfo& info : schema()) {
      if (info.group != group) continue;
      tables += fmt::format("| `/{}/{}` | {} | {} | {} | {} | {} |\n", path_of(group), info.name,
                            listed(info.run_axes()), info.unit, info.meaning, info.since, runs_with(info.presence));
    }
  }
  return tables;
}

}  // namespace gainlens::testing
