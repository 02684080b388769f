#include "core/check.h"
#include "data/raw_interactions.h"

#include <algorithm>

namespace gainlens::data {
namespace {

constexpr std::string_view as_in_rfc = "quotes as in RFC 4180 (--quotes none or backslash reads others)";

/// Refuses a header of a single column, or of none, that another delimiter splits.
/// @param broken  what is wrong with it; empty: it is one column
void refuse_other_delimiter(std::string_view header, char delimiter, Quotes quotes, const std::string& broken,
                            std::string_view where) {
  for (const Delimiter& other : delimiters()) {
    std::vector<std::string> names;
    if (other.character == delimiter || !split_fields(header, other.character, names, quotes).empty()) continue;
    CHECK(names.size() < 2, "{}: the header '{}' {} if {} split it; if it is split by {}, give --delimiter {}", where,
          printable(header, 80), broken.empty() ? "is one column" : broken, plural_of(delimiter), other.plural,
          other.name);
  }
}

}  // namespace

TableParser::TableParser(RawInteractions& result, const DataLine& first, char delimiter, const ColumnOptions& options,
                         std::string_view where)
    : LineParser(result), delimiter_(delimiter), quotes_(options.quotes.value_or(Quotes::rfc4180)) {
  std::vector<std::string> names;
  const std::string fault = split_fields(first.text, delimiter, names, quotes_);
  if (!fault.empty() || names.size() == 1) refuse_other_delimiter(first.text, delimiter, quotes_, fault, where);
  CHECK(fault.empty(), "{}: line {} {}: '{}'; give {}", where, first.number, fault, printable(first.text, 80),
        as_in_rfc);
  if (!options.header) {
    for (std::size_t i = 0; i < names.size(); ++i) names[i] = std::to_string(i + 1);
  }
  columns_ = names.size();
  places_ = find_columns(names, options, table_columns, where);
  result.timed = places_.time.has_value();
  result.columns = ReadColumns{
      .user = names[places_.user], .item = names[places_.item], .time = {}, .delimiter = delimiter, .quotes = quotes_};
  if (places_.time) result.columns->time = names[*places_.time];
}

std::string TableParser::read(const DataLine& line) {
  std::string fault = split_fields(line.text, delimiter_, fields_, quotes_);
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
  std::string text = fmt::format("each line has {} columns split by {}", columns_, plural_of(delimiter_));
  if (quotes_ == Quotes::none) return text;
  if (quotes_ == Quotes::rfc4180) return fmt::format("{}, with {}", text, as_in_rfc);
  return text + ", with quotes in which a backslash makes a quote a character";
}

}  // namespace gainlens::data
