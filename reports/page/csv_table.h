#pragma once

#include "analyses/cells.h"
#include "analyses/context.h"
#include "reports/measured.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace gainlens::reports {

using Cell = std::variant<std::string, std::int64_t, double>;  ///< a double that is NaN is an empty cell

/// A table for programs.
struct CsvTable {
  std::string name;  ///< stem of its file
  std::vector<std::string> header;
  std::vector<std::vector<Cell>> rows;
};

/// A text as a field: quoted if it needs to be (RFC 4180). A spreadsheet takes a text that begins with = + - @, a tab
/// or a line end for a formula. Such a text gets an apostrophe in front, which a spreadsheet does not show; so does one
/// in which such a character follows apostrophes, so that taking one apostrophe away from what looks like this gives
/// the text back. A text that is a number, for example "-5", stays. Source: OWASP, "CSV Injection".
std::string csv_field(std::string_view text);

/// RFC 4180 with a header line and line feeds; numbers in the fewest digits, texts as csv_field() and terminal_text().
std::string to_csv(const CsvTable& table);

// Cells of results; what is missing is an empty cell.

inline constexpr const char* aggregate_columns[] = {"", "_deviation", "_low", "_high"};
inline constexpr const char* interval_columns[] = {"", "_low", "_high"};

Cell empty_cell();
Cell cell(const Measured& value);
Cell cell(std::size_t count);
Cell mean_cell(const Maybe<analyses::Aggregate>& value);
/// low, high
void append(std::vector<Cell>& row, const Maybe<Interval>& interval);
/// mean, deviation, low, high
void append(std::vector<Cell>& row, const Maybe<analyses::Aggregate>& aggregate);
/// mean, low, high
void append(std::vector<Cell>& row, const analyses::Change& change);

}  // namespace gainlens::reports
