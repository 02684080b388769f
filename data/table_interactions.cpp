#include "core/check.h"
#include "data/raw_interactions.h"

#include <algorithm>

namespace gainlens::data {
namespace {

/// Refuses a header of a single column that another delimiter splits.
void refuse_other_delimiter(const std::string& header, char delimiter, std::string_view where) {
  for (const Delimiter& other : delimiters()) {
    CHECK(other.character == delimiter || header.find(other.character) == std::string::npos,
          "{}: the header '{}' is one column if {} split it; if it is split by {}, give --delimiter {}", where,
          printable(header, 80), plural_of(delimiter), other.plural, other.name);
  }
}

}  // namespace

TableParser::TableParser(RawInteractions& result, const DataLine& first, char delimiter, const ColumnOptions& options,
                         std::string_view where)
    : LineParser(result), delimiter_(delimiter) {
  std::vector<std::string> names;
  const std::string fault = split_fields(first.text, delimiter, names);
  CHECK(fault.empty(), "{}: line {} {}: '{}'; quotes stand as in RFC 4180", where, first.number, fault,
        printable(first.text, 80));
  if (names.size() == 1) refuse_other_delimiter(names.front(), delimiter, where);
  if (!options.header) {
    for (std::size_t i = 0; i < names.size(); ++i) names[i] = std::to_string(i + 1);
  }
  columns_ = names.size();
  places_ = find_columns(names, options, of_table, where);
  result.timed = places_.time.has_value();
  result.columns = ReadColumns{names[places_.user], names[places_.item], {}, delimiter, false};
  if (places_.time) result.columns->time = names[*places_.time];
}

std::string TableParser::read(const DataLine& line) {
  std::string fault = split_fields(line.text, delimiter_, fields_);
  if (!fault.empty()) return fault;
  if (fields_.size() != columns_) return fmt::format("has {} of {} columns", fields_.size(), columns_);
  double time = 0;
  if (places_.time) {
    fault = times_.read(fields_[*places_.time], line.number, time);
    if (!fault.empty()) return fault;
    result_.columns->dates = times_.dates();
  }
  return add(fields_[places_.user], fields_[places_.item], time, line.number);
}

std::string TableParser::allowed() const {
  return fmt::format("each line has {} columns split by {}, with quotes as in RFC 4180", columns_,
                     plural_of(delimiter_));
}

}  // namespace gainlens::data
