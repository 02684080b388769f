#include "reports/page/table.h"

#include "core/check.h"
#include "core/terminal_text.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace gainlens::reports {
namespace {

using analyses::Show, analyses::TableColumn, analyses::TableValue;

constexpr std::size_t max_line_width = 100;
constexpr std::size_t max_reasons = 5;  ///< the others are in JSON

bool is_text(const TableColumn& column) {
  return column.show.kind == Show::Kind::words || column.show.kind == Show::Kind::verbatim;
}

std::string heading_of(const TableColumn& column) {
  return column.unit.empty() ? column.heading : fmt::format("{} ({})", column.heading, column.unit);
}

/// The reasons of what is missing, the first of them if there are many.
std::vector<std::string> shown_reasons(const Table& table) {
  std::vector<std::string> reasons = analyses::reasons_of(table);
  if (reasons.size() > max_reasons) {
    const std::size_t left = reasons.size() - max_reasons;
    reasons.resize(max_reasons);
    reasons.push_back(fmt::format("number for {} more reasons, which --json has", left));
  }
  return reasons;
}

/// Appends the cells of a value; an interval has two.
void append_cells(std::vector<Cell>& row, const TableColumn& column, const TableValue& value) {
  const TableValue::Content& content = value.content();
  if (const auto* interval = std::get_if<Interval>(&content)) {
    row.insert(row.end(), {interval->low, interval->high});
    return;
  }
  Cell cell = empty_cell();
  if (const auto* text = std::get_if<std::string>(&content)) cell = *text;
  if (const auto* number = std::get_if<double>(&content)) cell = *number;
  if (const auto* count = std::get_if<std::int64_t>(&content)) cell = *count;
  row.insert(row.end(), column.show.kind == Show::Kind::ends ? 2 : 1, cell);
}

/// Code points, which is what a terminal shows of our texts.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

}  // namespace

PaperTable paper_table(const Table& table) {
  check_table(table);
  PaperTable paper{table.name, table.caption, {}, {}};
  for (const TableColumn& column : table.columns) {
    if (!column.heading.empty() && !column.behind)
      paper.columns.push_back({heading_of(column), is_text(column), column.show.kind == Show::Kind::verbatim});
  }
  for (const std::vector<TableValue>& values : table.rows) {
    std::vector<std::string>& row = paper.rows.emplace_back();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const TableColumn& column = table.columns[i];
      if (column.heading.empty()) continue;
      const std::string text = analyses::shown_value(column, values[i]);
      if (!column.behind)
        row.push_back(text);
      else if (!values[i].is_nothing() && row.back() != analyses::no_value)
        row.back() += " " + text;
    }
  }
  for (const std::string& reason : shown_reasons(table)) paper.caption += fmt::format(" No {}.", reason);
  return paper;
}

CsvTable csv_table(const Table& table, const std::string& name) {
  check_table(table);
  CsvTable csv{name.empty() ? table.name : name, {}, {}};
  for (const TableColumn& column : table.columns) {
    for (const std::string& key : analyses::csv_names(column)) csv.header.push_back(key);
  }
  for (const std::vector<TableValue>& values : table.rows) {
    std::vector<Cell>& row = csv.rows.emplace_back();
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!analyses::csv_names(table.columns[i]).empty()) append_cells(row, table.columns[i], values[i]);
    }
  }
  return csv;
}

std::string text_table(const Table& table) {
  PaperTable paper = paper_table(table);
  if (paper.rows.empty()) return {};
  std::vector<std::string> headings;
  for (const Column& column : paper.columns) headings.push_back(column.heading);
  paper.rows.insert(paper.rows.begin(), std::move(headings));
  std::vector<std::size_t> widths(paper.columns.size());
  for (std::vector<std::string>& row : paper.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = printable(row[i], std::string::npos);
      widths[i] = std::max(widths[i], width_of(row[i]));
    }
  }
  std::string text = table.caption.empty() ? "" : wrapped(table.caption);
  for (const std::vector<std::string>& row : paper.rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - width_of(row[i]), ' ');
      line += (i == 0 ? "" : "  ") + (paper.columns[i].text ? row[i] + blanks : blanks + row[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  for (const std::string& reason : shown_reasons(table)) text += wrapped("No " + printable(reason, 300));
  return text;
}

std::string wrapped(const std::string& text, std::size_t indent) {
  const std::string margin(indent, ' ');
  std::string lines, line;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!line.empty() && indent + width_of(line) + 1 + width_of(word) > max_line_width)
      lines += margin + std::exchange(line, {}) + '\n';
    line += line.empty() ? word : ' ' + word;
    at = end + 1;
  }
  return lines + margin + line + '\n';
}

}  // namespace gainlens::reports
