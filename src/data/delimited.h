#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::data {

/// One line of a file, without its line end.
struct DataLine {
  std::string_view text;
  std::int64_t number = 0;  ///< from 1
};

/// What a double quote is in a table.
enum class Quotes {
  none,      ///< a character as any other
  rfc4180,   ///< a field may stand in quotes, within which a quote is written twice, and line ends belong to the field
  backslash  ///< likewise; within quotes, a backslash before a quote or a backslash makes it a character of the field
};
std::string_view quotes_name(Quotes quotes);  ///< as on the command line: "none", "rfc4180", "backslash"
/// @throws InvalidArgument  none of the three (nearest match named)
Quotes parse_quotes(std::string_view text);

/// The lines of a file without line ends (LF or CRLF), without a byte order mark and without blank lines at the end.
class DataLines {
 public:
  /// Where a line end between quotes belongs to the line, `number` is that of its first line.
  explicit DataLines(std::string_view content, Quotes quotes = Quotes::none);
  std::optional<DataLine> next();

 private:
  std::string_view rest_;
  Quotes quotes_;
  bool done_ = false;
  std::int64_t number_ = 1;
};

/// Splits a line. Blanks belong to a field.
/// @param line    of DataLines with the same quotes
/// @param fields  replaced by the fields, without the quotes around them
/// @returns  what is wrong with the line, as the end of "line 7 ..."; empty if nothing is wrong
std::string split_fields(std::string_view line, char delimiter, std::vector<std::string>& fields,
                         Quotes quotes = Quotes::rfc4180);

/// The delimiters that files have, and how the command line and messages call them.
struct Delimiter {
  char character;
  std::string_view name;    ///< "comma"
  std::string_view plural;  ///< "commas"
};
const std::vector<Delimiter>& delimiters();
/// "commas".
/// @param delimiter  one of delimiters()
std::string_view plural_of(char delimiter);

/// @param text  a delimiter or its name; "\t" is a tab too
/// @throws InvalidArgument  something else (nearest match named)
char parse_delimiter(std::string_view text);

/// That of a file with the extension .csv, .tsv or .tab, also with .gz behind it; nothing for others.
std::optional<char> delimiter_of_file(std::string_view file_name);

}  // namespace gainlens::data
