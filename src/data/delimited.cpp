#include "data/delimited.h"

#include "core/check.h"
#include "core/nearest.h"
#include "core/plain_text.h"

#include <algorithm>
#include <array>

namespace gainlens::data {
namespace {

const std::array<std::string, 3> all_quotes = {"none", "rfc4180", "backslash"};

/// The place of the end of the line that `rest` begins with; npos if its last line has none.
std::size_t end_of_line(std::string_view rest, Quotes quotes) {
  if (quotes == Quotes::none) return rest.find('\n');
  const char* const marks = quotes == Quotes::backslash ? "\"\n\\" : "\"\n";
  // Every quoted field has two quotes, and every quote in it two. So within quotes their number is odd.
  bool inside = false;
  for (std::size_t at = rest.find_first_of(marks); at != std::string_view::npos;
       at = rest.find_first_of(marks, at + 1)) {
    if (rest[at] == '\\')
      at += inside ? 1 : 0;  // the character after it is no mark
    else if (rest[at] == '"')
      inside = !inside;
    else if (!inside)
      return at;
  }
  return std::string_view::npos;
}

/// Takes what stands before the next quote that is no character of the field.
/// @returns  false: there is none
bool take_to_quote(std::string_view& rest, Quotes quotes, std::string& field) {
  for (;;) {
    const std::size_t mark = rest.find_first_of(quotes == Quotes::backslash ? "\"\\" : "\"");
    if (mark == std::string_view::npos) return false;
    field += rest.substr(0, mark);
    const bool escape = rest[mark] == '\\';
    rest.remove_prefix(mark + 1);
    if (!escape) return true;
    if (rest.starts_with('"') || rest.starts_with('\\')) {
      field += rest.front();
      rest.remove_prefix(1);
    } else {
      field += '\\';
    }
  }
}

/// Reads a field that begins with a quote.
/// @param rest  of the line; shortened by the field
/// @returns  as split_fields()
std::string take_quoted(std::string_view& rest, char delimiter, Quotes quotes, std::string& field) {
  rest.remove_prefix(1);
  for (;;) {
    if (!take_to_quote(rest, quotes, field)) return "opens a quote that is never closed";
    if (rest.empty() || rest.front() == delimiter) return "";
    if (rest.front() != '"') return "has text after the closing quote of a field";
    field += '"';
    rest.remove_prefix(1);
  }
}

}  // namespace

DataLines::DataLines(std::string_view content, Quotes quotes) : rest_(content), quotes_(quotes) {
  if (rest_.starts_with("\xEF\xBB\xBF")) rest_.remove_prefix(3);
  const auto last = rest_.find_last_not_of(" \t\r\n");
  // Blanks at the end of the last line that holds something belong to it: a tab there is an empty last column.
  const auto end = last == std::string_view::npos ? 0 : std::min(rest_.find('\n', last), rest_.size());
  rest_ = rest_.substr(0, end);
  done_ = rest_.empty();
}

std::optional<DataLine> DataLines::next() {
  if (done_) return std::nullopt;
  const auto end = end_of_line(rest_, quotes_);
  done_ = end == std::string_view::npos;
  std::string_view text = rest_.substr(0, end);
  if (!done_) rest_.remove_prefix(end + 1);
  const std::int64_t number = number_;
  number_ += 1 + (quotes_ == Quotes::none ? 0 : std::count(text.begin(), text.end(), '\n'));
  if (text.ends_with('\r')) text.remove_suffix(1);
  return DataLine{text, number};
}

std::string split_fields(std::string_view line, char delimiter, std::vector<std::string>& fields, Quotes quotes) {
  std::size_t count = 0;
  for (;;) {
    if (fields.size() == count) fields.emplace_back();
    std::string& field = fields[count++];
    field.clear();
    if (quotes != Quotes::none && line.starts_with('"')) {
      std::string fault = take_quoted(line, delimiter, quotes, field);
      if (!fault.empty()) return fault;
    } else {
      const std::size_t end = std::min(line.find(delimiter), line.size());
      field = line.substr(0, end);
      if (quotes != Quotes::none && field.find('"') != std::string::npos)
        return "has a quote inside a field that does not begin with one";
      line.remove_prefix(end);
    }
    if (line.empty()) break;
    line.remove_prefix(1);
  }
  fields.resize(count);
  return "";
}

std::string_view quotes_name(Quotes quotes) {
  return all_quotes.at(static_cast<std::size_t>(quotes));
}

Quotes parse_quotes(std::string_view text) {
  for (const Quotes known : {Quotes::rfc4180, Quotes::backslash, Quotes::none}) {
    if (text == quotes_name(known)) return known;
  }
  throw_invalid("--quotes: '{}'; must be rfc4180, backslash or none{}", printable(text, 40),
                did_you_mean(text, all_quotes));
}

const std::vector<Delimiter>& delimiters() {
  static const std::vector<Delimiter> all = {
      {',', "comma", "commas"}, {'\t', "tab", "tabs"}, {';', "semicolon", "semicolons"}, {'|', "pipe", "pipes"}};
  return all;
}

std::string_view plural_of(char delimiter) {
  for (const Delimiter& known : delimiters()) {
    if (known.character == delimiter) return known.plural;
  }
  ASSERT(false, "no delimiter has the code {}", static_cast<int>(delimiter));
}

char parse_delimiter(std::string_view text) {
  if (text == "\\t") return '\t';
  std::vector<std::string> names;
  for (const Delimiter& known : delimiters()) {
    if (text == known.name || text == std::string_view(&known.character, 1)) return known.character;
    names.emplace_back(known.name);
  }
  throw_invalid("--delimiter: '{}'; must be comma, tab, semicolon or pipe, or the character itself{}",
                printable(text, 60), did_you_mean(text, names));
}

std::optional<char> delimiter_of_file(std::string_view file_name) {
  const std::string name = ascii_lower(file_name);
  std::string_view left = name;
  if (left.ends_with(".gz")) left.remove_suffix(3);
  if (left.ends_with(".csv")) return ',';
  if (left.ends_with(".tsv") || left.ends_with(".tab")) return '\t';
  return std::nullopt;
}

}  // namespace gainlens::data
