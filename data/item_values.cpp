#include "data/item_values.h"

#include "core/check.h"
#include "data/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <unordered_map>

namespace gainlens::data {
namespace {

/// The next field of a line, up to a comma.
std::string_view next_field(std::string_view& line) {
  const std::size_t end = std::min(line.find(','), line.size());
  const std::string_view field = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return field;
}

std::string_view next_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace

ItemValues read_item_values(const std::filesystem::path& path, const Interactions& interactions) {
  const std::string content = read_text(path), where = printable(path.string());
  std::string_view rest = content;
  if (rest.starts_with("\xEF\xBB\xBF")) rest.remove_prefix(3);
  std::string_view heading = next_line(rest);
  const bool has_items = next_field(heading) == "item";
  ItemValues found{std::string(next_field(heading)), {}, 0};
  CHECK(has_items && !found.name.empty(), "{}: the first line must be item,NAME: the names of two columns", where);
  std::unordered_map<std::string_view, std::size_t> places;
  for (std::size_t id = 1; id < interactions.items.size(); ++id) places.emplace(interactions.items[id], id - 1);
  const double missing = std::numeric_limits<double>::quiet_NaN();
  found.values.assign(interactions.items.size() - 1, missing);
  for (std::size_t number = 2; !rest.empty(); ++number) {
    std::string_view line = next_line(rest);
    const std::string_view item = next_field(line), text = next_field(line);
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    CHECK(!item.empty() && error == std::errc() && end == text.data() + text.size() &&
              std::abs(value) <= largest_item_value,
          "{}: line {} must be an item, a comma and a number of at most {:g} in size", where, number,
          largest_item_value);
    const auto place = places.find(item);
    if (place == places.end()) {
      ++found.of_no_item;
      continue;
    }
    CHECK(std::isnan(found.values[place->second]), "{}: line {}: item '{}' stands twice", where, number,
          printable(item, 60));
    found.values[place->second] = value;
  }
  for (std::size_t i = 0; i < found.values.size(); ++i) {
    CHECK(!std::isnan(found.values[i]), "{}: has no line for item '{}' of the data", where,
          printable(interactions.items[i + 1], 60));
  }
  return found;
}

}  // namespace gainlens::data
