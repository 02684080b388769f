#include "data/raw_interactions.h"

#include "core/available_memory.h"
#include "core/check.h"
#include "core/counted.h"
#include "core/plain_text.h"
#include "core/quantity.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>

namespace gainlens::data {
namespace {

/// Item ids end at 2^31 - 1. One less leaves room for a token of the models (MASK).
constexpr std::size_t max_names = std::numeric_limits<std::int32_t>::max() - 1;
constexpr std::size_t shown_bytes = 80;  ///< of a line, in messages

std::vector<std::string_view> split_at(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> fields;
  for (;;) {
    const auto end = text.find(separator);
    fields.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return fields;
    text.remove_prefix(end + separator.size());
  }
}

/// Words between spaces and tabs; several of them in a row separate as one does.
std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  for (;;) {
    const auto begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return words;
    text.remove_prefix(begin);
    const auto end = std::min(text.find_first_of(" \t"), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

/// A number from 1 to 2^31 - 1, written without zeros in front: "7", but not "07", "+7" or "7.0".
bool is_item_number(std::string_view text) {
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 1 && text.front() != '0';
}

constexpr std::string_view allowed_items = "with items from 1 to 2147483647";

/// What is wrong with the item of a line; empty if nothing is.
std::string item_fault(std::string_view item) {
  return is_item_number(item) ? "" : fmt::format("has the item '{}'", printable(item, 40));
}

/// The first line that is no pair `user item`. Nothing if every line is one.
std::optional<DataLine> first_other_than_pair(std::string_view content) {
  DataLines lines(content);
  for (auto line = lines.next(); line; line = lines.next()) {
    if (split_words(line->text).size() != 2) return line;
  }
  return std::nullopt;
}

/// As sequences, such a file would have one item for each user, which nothing can be learned from.
class PairsParser : public LineParser {
 public:
  using LineParser::LineParser;
  std::string read(const DataLine& line) override {
    const auto words = split_words(line.text);
    std::string fault = item_fault(words[1]);
    return fault.empty() ? add(words[0], words[1], 0, line.number) : fault;
  }
  std::string allowed() const override {
    return fmt::format("each line is a pair `user item`, in the order of time, {}", allowed_items);
  }
};

class SequencesParser : public LineParser {
 public:
  /// @param other  the first line that is no pair `user item`
  SequencesParser(RawInteractions& result, const DataLine& other) : LineParser(result), other_(other) {}
  std::string read(const DataLine& line) override {
    const auto words = split_words(line.text);
    if (words.size() < 2) return "has no item";
    for (std::size_t i = 1; i < words.size(); ++i) {
      std::string fault = item_fault(words[i]);
      if (!fault.empty()) return fault;
    }
    const std::size_t known = result_.users.size();
    const std::uint32_t user = result_.users.number(words[0]);
    if (user < known) return fmt::format("repeats user '{}' of line {}", printable(words[0], 40), lines_[user]);
    lines_.push_back(line.number);
    for (std::size_t i = 1; i < words.size(); ++i) {
      std::string fault = add(words[0], words[i], 0, line.number);
      if (!fault.empty()) return fault;
    }
    return "";
  }
  std::string allowed() const override {
    std::string text = fmt::format("each line is `user item item ...`, one line for each user, {}", allowed_items);
    if (other_.number > 1)  // the lines before it may be pairs
      text += fmt::format("; or every line is a pair `user item`, and line {} has {}", other_.number,
                          counted(split_words(other_.text).size(), "word"));
    return text;
  }

 private:
  DataLine other_;
  std::vector<std::int64_t> lines_;  ///< [user]
};

class MovieLensParser : public LineParser {
 public:
  MovieLensParser(RawInteractions& result, std::string_view separator) : LineParser(result), separator_(separator) {
    result.timed = true;
  }
  std::string read(const DataLine& line) override {
    const auto fields = split_at(line.text, separator_);
    if (fields.size() != 4) return "has " + counted(fields.size(), "field");
    // The rating is not used. If it is no number, the columns are not those of this format.
    if (!finite_number(fields[2])) return fmt::format("has the rating '{}'", printable(fields[2], 40));
    double time = 0;
    std::string fault = read_time(fields[3], time);
    return fault.empty() ? add(fields[0], fields[1], time, line.number) : fault;
  }
  std::string allowed() const override {
    return separator_ == tab ? "each line is user, item, rating and time with a tab between them"
                             : "each line is user::item::rating::time";
  }
  static constexpr std::string_view colons = "::", tab = "\t";

 private:
  std::string_view separator_;
};

/// Whether a line is one of MovieLens' u.data. A sequence would be one with an item above 10^8 and one below 6; if the
/// others were like it too, nobody would have the three interactions that are needed.
bool is_tabbed_rating(std::string_view line) {
  const auto fields = split_at(line, MovieLensParser::tab);
  if (fields.size() != 4) return false;
  const auto rating = finite_number(fields[2]), time = finite_number(fields[3]);
  return rating && time && *rating >= 0 && *rating <= 5 && *time > 1e8;
}

/// Whether a word of a header is `name:type` with a type of RecBole.
bool is_recbole_column(std::string_view word) {
  const auto colon = word.find(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const std::string_view type = word.substr(colon + 1);
  return type == "token" || type == "float" || type == "token_seq" || type == "float_seq";
}

class RecBoleParser : public LineParser {
 public:
  RecBoleParser(RawInteractions& result, std::string_view header, std::string_view where) : LineParser(result) {
    const auto columns = split_at(header, "\t");
    columns_ = columns.size();
    CHECK(std::all_of(columns.begin(), columns.end(), is_recbole_column),
          "{}: the header '{}' has columns that are not name:type; split columns by one tab", where,
          printable(header, shown_bytes));
    user_ = *find(columns, "user_id", "token", /*needed=*/true, where);
    item_ = *find(columns, "item_id", "token", /*needed=*/true, where);
    time_ = find(columns, "timestamp", "float", /*needed=*/false, where);
    result.timed = time_.has_value();
  }
  std::string read(const DataLine& line) override {
    const auto fields = split_at(line.text, "\t");
    if (fields.size() != columns_) return fmt::format("has {} of {} columns", fields.size(), columns_);
    double time = 0;
    if (time_) {
      std::string fault = read_time(fields[*time_], time);
      if (!fault.empty()) return fault;
    }
    return add(fields[user_], fields[item_], time, line.number);
  }
  std::string allowed() const override { return "each line has the columns of the header, split by one tab"; }

 private:
  static std::optional<std::size_t> find(const std::vector<std::string_view>& columns, std::string_view name,
                                         std::string_view type, bool needed, std::string_view where) {
    std::optional<std::size_t> found;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (columns[i].substr(0, columns[i].find(':')) != name) continue;
      CHECK(!found, "{}: the header has the column {} twice; remove one", where, name);
      CHECK(columns[i].substr(name.size() + 1) == type, "{}: the header has the column '{}'; it must be {}:{}", where,
            columns[i], name, type);
      found = i;
    }
    CHECK(found || !needed, "{}: the header has no column {}:{}; add it", where, name, type);
    return found;
  }

  std::size_t columns_ = 0, user_ = 0, item_ = 0;
  std::optional<std::size_t> time_;
};

/// Whether a line is that of a sequence. A line of prose also has a first word and others; digits tell a sequence from
/// it.
bool is_sequence(std::string_view line) {
  const auto words = split_words(line);
  return words.size() >= 2 && words[1].find_first_not_of("0123456789") == std::string_view::npos;
}

/// The format that the first line has, whatever the name of the file.
std::optional<InteractionFormat> format_of(std::string_view first) {
  if (first.starts_with('{')) return InteractionFormat::json;
  if (first.find(MovieLensParser::colons) != std::string_view::npos) return InteractionFormat::movielens;
  const auto words = split_words(first);
  if (!words.empty() && std::all_of(words.begin(), words.end(), is_recbole_column)) return InteractionFormat::recbole;
  if (is_tabbed_rating(first)) return InteractionFormat::movielens;
  return is_sequence(first) ? std::optional(InteractionFormat::sequences) : std::nullopt;
}

/// The delimiter of a table; nothing if the file is none.
std::optional<char> delimiter_of(std::string_view first, const NamedFile& file, const ColumnOptions& options) {
  if (options.delimiter) return options.delimiter;
  const auto format = format_of(first);
  CHECK(options.header || format != InteractionFormat::json,
        "{}: --no-header is for tables, and this file has JSON lines; leave it out", file.where);
  CHECK(!options.quotes || format != InteractionFormat::json,
        "{}: --quotes is for tables, and this file has JSON lines; leave it out", file.where);
  if (format == InteractionFormat::json) return std::nullopt;
  // A file *.tsv can hold lines of another format, but those who name columns want a table.
  if (file.delimiter && (!format || options.reads_columns())) return file.delimiter;
  CHECK(options.header, "{}: --no-header is for tables; give --delimiter too", file.where);
  CHECK(!options.quotes, "{}: --quotes is for tables; give --delimiter too", file.where);
  CHECK(!options.name_columns(),
        "{}: columns are named, and it is no JSON and not called *.csv or *.tsv; give --delimiter too", file.where);
  return std::nullopt;
}

/// The parser of a file that is no table.
std::unique_ptr<LineParser> make_parser(std::string_view content, const DataLine& first, const NamedFile& file,
                                        const ColumnOptions& options, RawInteractions& result) {
  const auto format = format_of(first.text);
  CHECK(format,
        "{}: the first line '{}' is not that of a data set; give RecBole's .inter (a header `user_id:token "
        "item_id:token timestamp:float`), lines `user item item ...` or `user item`, MovieLens lines "
        "`user::item::rating::time`, JSON "
        "lines, or CSV with a header (a file *.csv or *.tsv, or --delimiter)",
        file.where, printable(first.text, shown_bytes));
  result.format = *format;
  switch (*format) {
    case InteractionFormat::recbole:
      return std::make_unique<RecBoleParser>(result, first.text, file.where);
    case InteractionFormat::sequences:
      if (const auto other = first_other_than_pair(content)) return std::make_unique<SequencesParser>(result, *other);
      result.format = InteractionFormat::pairs;
      return std::make_unique<PairsParser>(result);
    case InteractionFormat::movielens:
      return std::make_unique<MovieLensParser>(
          result, is_tabbed_rating(first.text) ? MovieLensParser::tab : MovieLensParser::colons);
    case InteractionFormat::amazon:
    case InteractionFormat::json:
      return std::make_unique<JsonParser>(result, first, options, file.where);
    case InteractionFormat::pairs:  // told from sequences above
    case InteractionFormat::table:
    case InteractionFormat::parquet:
      break;
  }
  ASSERT(false, "unknown format");
}

/// Names stand in one line of the split's checksum and in messages.
std::string name_fault(std::string_view name, std::string_view what) {
  if (name.empty()) return fmt::format("has an empty {}", what);
  const bool control = std::any_of(name.begin(), name.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7F;
  });
  return control ? fmt::format("has a control character in its {}", what) : "";
}

}  // namespace

std::uint32_t Names::number(std::string_view name) {
  const auto found = numbers_.find(name);
  if (found != numbers_.end()) return found->second;
  const auto number = static_cast<std::uint32_t>(names_.size());
  numbers_.emplace(names_.emplace_back(name), number);
  return number;
}

std::string RawInteractions::add(std::string_view user, std::string_view item, double time, std::int64_t line) {
  std::string fault = name_fault(user, "user");
  if (fault.empty()) fault = name_fault(item, "item");
  if (fault.empty()) interactions.push_back({users.number(user), items.number(item), time, line});
  return fault;
}

void RawInteractions::make_room(std::string_view where, std::int64_t line) {
  CHECK(users.size() <= max_names && items.size() <= max_names,
        "{}: more than {} users or items up to {} {}; give a smaller data set", where, max_names, unit(), line);
  // Grows before it is full, so that the memory is asked for first. The old one is held until all are copied.
  constexpr std::size_t never_too_many = std::size_t{1} << 22;
  const std::size_t room = interactions.capacity();
  if (room < never_too_many || interactions.size() < room - room / 8) return;
  const auto available = available_memory();
  CHECK(!available || *available / (2 * sizeof(RawInteraction)) >= room,
        "{}: more than {} interactions, and {} of memory are available; give a smaller data set", where,
        interactions.size() - 1, format_bytes(*available));
  interactions.reserve(2 * room);
}

void Faults::add(std::int64_t line, std::string_view reason, std::string_view text) {
  if (count_++ > 0) return;
  first_ = fmt::format("{} {} {}", unit_, line, reason);
  if (unit_ == "line") first_ += fmt::format(": '{}'", printable(text, shown_bytes));
}

void Faults::raise(std::string_view where, std::string_view allowed) const {
  const std::string others =
      count_ < 2 ? "" : fmt::format(" ({} malformed)", counted_are(count_ - 1, fmt::format("other {}", unit_)));
  CHECK(count_ == 0, "{}: {}{}; {}", where, first_, others, allowed);
}

RawInteractions parse_interactions(std::string_view content, const NamedFile& file, const ColumnOptions& options) {
  const std::string_view where = file.where;
  CHECK(!content.starts_with("\xFF\xFE") && !content.starts_with("\xFE\xFF"),
        "{}: UTF-16; convert it, for example with iconv -t UTF-8", where);
  CHECK(!content.starts_with("PAR1"), "{}: a Parquet file within gzip; unpack it with gunzip", where);
  const auto first = DataLines(content).next();
  CHECK(first, "{}: empty; give a data set", where);
  RawInteractions result;
  const auto delimiter = delimiter_of(first->text, file, options);
  if (delimiter) result.format = InteractionFormat::table;
  DataLines lines(content, delimiter ? options.quotes.value_or(Quotes::rfc4180) : Quotes::none);
  auto line = lines.next();
  const auto parser = delimiter ? std::make_unique<TableParser>(result, *line, *delimiter, options, where)
                                : make_parser(content, *line, file, options, result);
  const bool header = delimiter ? options.header : result.format == InteractionFormat::recbole;
  if (header) line = lines.next();
  CHECK(line, "{}: no interactions, only a header; give a data set", where);
  Faults faults(result.unit());
  for (; line; line = lines.next()) {
    const std::string fault = parser->read(*line);
    if (!fault.empty()) faults.add(line->number, fault, line->text);
    result.make_room(where, line->number);
  }
  faults.raise(where, parser->allowed());
  return result;
}

}  // namespace gainlens::data
