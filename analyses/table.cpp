#include "analyses/table.h"

#include "core/check.h"
#include "core/quantity.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace gainlens::analyses {
namespace {

using Kind = Show::Kind;

template <typename T>
const T* as(const TableValue& value) {
  return std::get_if<T>(&value.content());
}

/// Whether a value is of a column's kind, or is not there.
bool fits(const TableValue& value, Kind kind) {
  if (as<std::string>(value)) return kind == Kind::words || kind == Kind::verbatim;
  if (as<std::int64_t>(value)) return kind == Kind::whole;
  if (as<double>(value)) return kind == Kind::number;
  return !as<Interval>(value) || kind == Kind::ends;
}

}  // namespace

std::string in_fixed_digits(double number, int digits, bool sign) {
  return sign ? fmt::format("{:+.{}f}", number, digits) : fmt::format("{:.{}f}", number, digits);
}

std::string in_significant_digits(double number, int digits) {
  return fmt::format("{:.{}g}", number, digits);
}

std::string token_digits(double tokens) {
  return format_count(static_cast<std::int64_t>(tokens));
}

TableValue::TableValue(double number) : content_(number) {
  ASSERT(std::isfinite(number), "a table holds {}; a number that is missing needs a reason", number);
}

TableValue::TableValue(const Interval& interval) : content_(interval) {
  ASSERT(std::isfinite(interval.low) && std::isfinite(interval.high), "a table holds the interval [{}, {}]",
         interval.low, interval.high);
}

TableValue::TableValue(std::optional<double> number, const std::string& reason) {
  ASSERT(number.has_value() == reason.empty(), "a table holds {}",
         number ? "a number with a reason why it is missing: " + reason : "a missing number without a reason");
  if (number)
    *this = TableValue(*number);
  else
    content_ = Missing{reason};
}

const std::string* TableValue::reason() const {
  const auto* const missing = as<Missing>(*this);
  return missing ? &missing->reason : nullptr;
}

std::vector<std::string> csv_names(const TableColumn& column) {
  const std::string name = column.csv.value_or(column.key);
  if (name.empty()) return {};
  if (column.show.kind != Kind::ends) return {name};
  const std::size_t star = std::min(name.find('*'), name.size());
  const std::string front = name.substr(0, star) + (star == name.size() ? "_" : ""),
                    back = star == name.size() ? "" : name.substr(star + 1);
  return {front + "low" + back, front + "high" + back};
}

void check_table(const Table& table) {
  ASSERT(!table.columns.empty(), "{}: a table without columns", table.name);
  std::set<std::string> csv, json;
  const auto add = [&](std::set<std::string>& names, const std::string& name) {
    ASSERT(name.empty() || names.insert(name).second, "{}: two columns are called {}", table.name, name);
  };
  for (const TableColumn& column : table.columns) {
    for (const std::string& name : csv_names(column)) add(csv, name);
    add(json, column.json.value_or(column.key));
  }
  for (const std::vector<TableValue>& row : table.rows) {
    ASSERT(row.size() == table.columns.size(), "{}: {} values in {} columns", table.name, row.size(),
           table.columns.size());
    for (std::size_t i = 0; i < row.size(); ++i)
      ASSERT(fits(row[i], table.columns[i].show.kind), "{}: column {} has a value of another kind", table.name,
             table.columns[i].key);
  }
}

std::vector<std::string> reasons_of(const Table& table) {
  std::vector<std::pair<std::string, std::vector<std::string>>> found;  // reason, headings
  for (const std::vector<TableValue>& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string* const reason = row[i].reason();
      if (!reason || table.columns[i].heading.empty()) continue;
      auto place = std::ranges::find(found, *reason, [](const auto& one) { return one.first; });
      if (place == found.end()) place = found.insert(found.end(), {*reason, {}});
      if (std::ranges::find(place->second, table.columns[i].heading) == place->second.end())
        place->second.push_back(table.columns[i].heading);
    }
  }
  std::vector<std::string> reasons;
  reasons.reserve(found.size());
  for (const auto& [reason, headings] : found)
    reasons.push_back(fmt::format("{}: {}", fmt::join(headings, ", "), reason));
  return reasons;
}

std::string shown_value(const TableColumn& column, const TableValue& value) {
  const auto digits = [&](double number) { return column.show.digits(number); };
  if (const auto* text = as<std::string>(value)) return *text;
  if (const auto* number = as<double>(value)) return digits(*number);
  if (const auto* ends = as<Interval>(value)) return fmt::format("[{}, {}]", digits(ends->low), digits(ends->high));
  if (const auto* count = as<std::int64_t>(value))
    return column.show.digits ? digits(static_cast<double>(*count)) : fmt::format("{}", *count);
  return no_value;
}

OrderedJson row_json(const Table& table, std::size_t row) {
  OrderedJson object = OrderedJson::object();
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const std::string key = table.columns[i].json.value_or(table.columns[i].key);
    const TableValue& value = table.rows.at(row).at(i);
    if (key.empty()) continue;
    if (const auto* text = as<std::string>(value)) object[key] = *text;
    if (const auto* number = as<double>(value)) object[key] = *number;
    if (const auto* count = as<std::int64_t>(value)) object[key] = *count;
    if (const auto* ends = as<Interval>(value)) object[key] = {ends->low, ends->high};
    if (const std::string* reason = value.reason()) {
      object[key] = nullptr;
      object[key + "_reason"] = *reason;
    }
  }
  return object;
}

OrderedJson to_json(const Table& table) {
  check_table(table);
  OrderedJson rows = OrderedJson::array();
  for (std::size_t row = 0; row < table.rows.size(); ++row) rows.push_back(row_json(table, row));
  return rows;
}

}  // namespace gainlens::analyses
