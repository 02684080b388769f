#include "data/item_values.h"

#include "core/check.h"
#include "core/plain_text.h"
#include "data/delimited.h"
#include "data/text.h"
#include "data/time_text.h"

#include <cmath>
#include <limits>
#include <string_view>
#include <unordered_map>

namespace gainlens::data {
ItemValues read_item_values(const std::filesystem::path& path, const Interactions& interactions) {
  const std::string content = read_text(path), where = printable(path.string());
  DataLines lines(content, Quotes::rfc4180);
  std::vector<std::string> fields;
  const auto heading = lines.next();
  const bool named = heading && split_fields(heading->text, ',', fields).empty() && fields.size() >= 2 &&
                     fields[0] == "item" && !fields[1].empty();
  CHECK(named, "{}: the first line must be item,NAME: the names of two columns", where);
  ItemValues found{fields[1], {}, 0};
  const std::size_t columns = fields.size();
  std::unordered_map<std::string_view, std::size_t> places;
  for (std::size_t id = 1; id < interactions.items.size(); ++id) places.emplace(interactions.items[id], id - 1);
  const double missing = std::numeric_limits<double>::quiet_NaN();
  found.values.assign(interactions.items.size() - 1, missing);
  while (const auto line = lines.next()) {
    const std::string fault = split_fields(line->text, ',', fields);
    CHECK(fault.empty(), "{}: line {} {}", where, line->number, fault);
    CHECK(fields.size() == columns,
          "{}: line {} has {} of {} columns; it must be an item, a comma and a number, and "
          "what the other columns of the first line hold",
          where, line->number, fields.size(), columns);
    const auto value = finite_number(fields[1]);
    CHECK(!fields[0].empty() && value && std::abs(*value) <= largest_item_value,
          "{}: line {} must be an item, a comma and a number of at most {:g} in size", where, line->number,
          largest_item_value);
    const auto place = places.find(fields[0]);
    if (place == places.end()) {
      ++found.lines_without_item;
      continue;
    }
    CHECK(std::isnan(found.values[place->second]), "{}: line {}: item '{}' stands twice", where, line->number,
          printable(fields[0], 60));
    found.values[place->second] = *value;
  }
  for (std::size_t i = 0; i < found.values.size(); ++i) {
    CHECK(!std::isnan(found.values[i]), "{}: has no line for item '{}' of the data", where,
          printable(interactions.items[i + 1], 60));
  }
  return found;
}

}  // namespace gainlens::data
