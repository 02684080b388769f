#include "data/item_names.h"

#include "core/check.h"
#include "core/nearest.h"
#include "data/delimited.h"
#include "formats/gzip.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>
#include <system_error>
#include <unordered_map>

namespace gainlens::data {
namespace {

constexpr std::uint64_t largest_file = std::uint64_t{4} << 30;

/// The number that a name is; nothing if it is not written as a whole number below 2^31 without zeros in front.
std::optional<std::int32_t> as_number(std::string_view name) {
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value);
  const bool whole = error == std::errc() && end == name.data() + name.size() && value >= 0;
  if (!whole || (name.size() > 1 && name.front() == '0') || name.front() == '-') return std::nullopt;
  return value;
}

std::size_t column_named(const std::string& name, const std::vector<std::string>& columns, const std::string& where) {
  const auto found = std::find(columns.begin(), columns.end(), name);
  CHECK(found != columns.end(),
        "{}: has no column '{}'; the columns item and id are needed: the name of an item and its number{}", where, name,
        printable(did_you_mean(name, columns), 100));
  CHECK(std::count(columns.begin(), columns.end(), name) == 1, "{}: has the column '{}' twice; rename one", where,
        name);
  return static_cast<std::size_t>(found - columns.begin());
}

/// The names by their ids, without id 0.
std::map<std::int32_t, std::string> read_ids(const std::filesystem::path& path, const std::string& where) {
  const std::string content = formats::read_plain_or_gzip(path, largest_file);
  const char delimiter = delimiter_of_file(path.filename().string()).value_or(',');
  DataLines lines(content, Quotes::rfc4180);
  std::vector<std::string> fields;
  const auto fields_of = [&](const DataLine& line) {
    const std::string fault = split_fields(line.text, delimiter, fields);
    CHECK(fault.empty(), "{}: line {} {}; quotes stand as in RFC 4180", where, line.number, fault);
  };
  const auto header = lines.next();
  CHECK(header, "{}: empty; give a table with the columns item and id", where);
  fields_of(*header);
  const std::size_t columns = fields.size(), item = column_named("item", fields, where),
                    id = column_named("id", fields, where);
  std::map<std::int32_t, std::string> names;
  std::unordered_map<std::string, std::int64_t> line_of;
  while (const auto line = lines.next()) {
    fields_of(*line);
    CHECK(fields.size() == columns, "{}: line {} has {} of {} columns", where, line->number, fields.size(), columns);
    const auto number = as_number(fields[id]);
    CHECK(number, "{}: line {} has the id '{}'; must be a whole number from 0", where, line->number,
          printable(fields[id], 40));
    if (*number == 0) continue;
    CHECK(names.emplace(*number, fields[item]).second, "{}: line {}: id {} stands twice", where, line->number, *number);
    const auto [before, added] = line_of.emplace(fields[item], line->number);
    CHECK(added, "{}: lines {} and {}: item '{}' stands twice", where, before->second, line->number,
          printable(fields[item], 60));
  }
  return names;
}

}  // namespace

void sort_by_name(std::vector<std::uint32_t>& items, const std::function<const std::string&(std::uint32_t)>& name) {
  std::unordered_map<std::uint32_t, std::int32_t> numbers;
  const bool all_numbers = std::all_of(items.begin(), items.end(), [&](std::uint32_t item) {
    const auto number = as_number(name(item));
    if (number) numbers.emplace(item, *number);
    return number.has_value();
  });
  std::sort(items.begin(), items.end(), [&](std::uint32_t a, std::uint32_t b) {
    return all_numbers ? numbers.at(a) < numbers.at(b) : name(a) < name(b);
  });
}

std::vector<std::uint32_t> order_of_names(std::span<const std::string> names) {
  std::vector<std::uint32_t> order(names.size());
  std::iota(order.begin(), order.end(), 0);
  sort_by_name(order, [&](std::uint32_t place) -> const std::string& { return names[place]; });
  return order;
}

std::vector<std::string> read_item_ids(const std::filesystem::path& path) {
  const std::string where = printable(path.string());
  std::map<std::int32_t, std::string> by_id = read_ids(path, where);
  CHECK(!by_id.empty(), "{}: names no items", where);
  std::vector<std::string> names;
  names.reserve(by_id.size());
  for (auto& [id, name] : by_id) {
    CHECK(id == std::ssize(names) + 1, "{}: no item has the id {}; the ids must be 1 to the number of items", where,
          names.size() + 1);
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace gainlens::data
