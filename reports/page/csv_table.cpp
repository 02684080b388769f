#include "reports/page/csv_table.h"

#include "core/check.h"
#include "core/spreadsheet_text.h"
#include "core/terminal_text.h"

#include <cmath>
#include <limits>

namespace gainlens::reports {
namespace {

constexpr double empty = std::numeric_limits<double>::quiet_NaN();

std::string field_of(const Cell& cell) {
  if (const auto* number = std::get_if<double>(&cell)) return std::isfinite(*number) ? fmt::format("{}", *number) : "";
  if (const auto* integer = std::get_if<std::int64_t>(&cell)) return fmt::format("{}", *integer);
  return csv_field(terminal_text(std::get<std::string>(cell)));
}

}  // namespace

std::string csv_field(std::string_view text) {
  std::string safe = looks_like_formula(text) ? "'" : "";
  safe += text;
  if (safe.find_first_of(",\"\r\n") == std::string::npos) return safe;
  std::string quoted = "\"";
  for (const char c : safe) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

Cell empty_cell() {
  return empty;
}

Cell cell(const Measured& value) {
  return value ? *value : empty;
}

Cell cell(std::size_t count) {
  return static_cast<std::int64_t>(count);
}

Cell mean_cell(const Maybe<analyses::Aggregate>& value) {
  return value ? value->mean : empty;
}

void append(std::vector<Cell>& row, const Maybe<Interval>& interval) {
  row.emplace_back(interval ? interval->low : empty);
  row.emplace_back(interval ? interval->high : empty);
}

void append(std::vector<Cell>& row, const Maybe<analyses::Aggregate>& aggregate) {
  row.push_back(mean_cell(aggregate));
  row.push_back(aggregate ? cell(aggregate->deviation) : empty_cell());
  append(row, aggregate ? aggregate->interval : Maybe<Interval>::none(aggregate.reason()));
}

void append(std::vector<Cell>& row, const analyses::Change& change) {
  row.push_back(cell(change.mean));
  append(row, change.interval);
}

std::string to_csv(const CsvTable& table) {
  std::vector<std::vector<Cell>> lines = {{table.header.begin(), table.header.end()}};
  lines.insert(lines.end(), table.rows.begin(), table.rows.end());
  std::string text;
  for (const std::vector<Cell>& line : lines) {
    ASSERT(line.size() == table.header.size(), "{}: {} cells under {} headings", table.name, line.size(),
           table.header.size());
    for (std::size_t i = 0; i < line.size(); ++i) text += (i == 0 ? "" : ",") + field_of(line[i]);
    text += '\n';
  }
  return text;
}

}  // namespace gainlens::reports
