#include "data/raw_interactions.h"

#include "core/check.h"
#include "core/counted.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>

namespace gainlens::data {
namespace {

/// Item ids end at 2^31 - 1. One less leaves room for a token of the models (MASK).
constexpr std::size_t most_names = std::numeric_limits<std::int32_t>::max() - 1;
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

/// The whole text as a number; nothing if it is none, infinite or not a number.
std::optional<double> finite_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// What is wrong with the text of a time; empty if it can be used.
std::string time_fault(std::string_view text) {
  const auto time = finite_number(text);
  if (!time) return fmt::format("has the time '{}', which is not a finite number", printable(text, 40));
  return time_fits(*time) ? "" : fmt::format("has the time {}, which is not below 2^53", printable(text, 40));
}

/// A number from 1 to 2^31 - 1, written without zeros in front: "7", but not "07", "+7" or "7.0".
bool is_item_number(std::string_view text) {
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 1 && text.front() != '0';
}

class SequencesParser : public LineParser {
 public:
  using LineParser::LineParser;
  std::string read(const DataLine& line) override {
    const auto words = split_words(line.text);
    if (words.size() < 2) return "has no item";
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (!is_item_number(words[i])) return fmt::format("has the item '{}'", printable(words[i], 40));
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
    return "each line is `user item item ...`, one line for each user, with items from 1 to 2147483647";
  }

 private:
  std::vector<std::int64_t> lines_;  ///< [user]
};

class MovieLensParser : public LineParser {
 public:
  explicit MovieLensParser(RawInteractions& result) : LineParser(result) { result.timed = true; }
  std::string read(const DataLine& line) override {
    const auto fields = split_at(line.text, "::");
    if (fields.size() != 4) return "has " + counted(fields.size(), "field");
    // The rating is not used. If it is no number, the columns are not those of this format.
    if (!finite_number(fields[2])) return fmt::format("has the rating '{}'", printable(fields[2], 40));
    std::string fault = time_fault(fields[3]);
    return fault.empty() ? add(fields[0], fields[1], *finite_number(fields[3]), line.number) : fault;
  }
  std::string allowed() const override { return "each line is user::item::rating::time"; }
};

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
    user_ = *find(columns, "user_id", "token", true, where);
    item_ = *find(columns, "item_id", "token", true, where);
    time_ = find(columns, "timestamp", "float", false, where);
    result.timed = time_.has_value();
  }
  std::string read(const DataLine& line) override {
    const auto fields = split_at(line.text, "\t");
    if (fields.size() != columns_) return fmt::format("has {} of {} columns", fields.size(), columns_);
    double time = 0;
    if (time_) {
      std::string fault = time_fault(fields[*time_]);
      if (!fault.empty()) return fault;
      time = *finite_number(fields[*time_]);
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

InteractionFormat format_of(std::string_view first, std::string_view where) {
  if (first.starts_with('{')) return InteractionFormat::amazon;
  if (first.find("::") != std::string_view::npos) return InteractionFormat::movielens;
  const auto words = split_words(first);
  if (!words.empty() && std::all_of(words.begin(), words.end(), is_recbole_column)) return InteractionFormat::recbole;
  // A line of prose also has a first word and others. Digits tell a sequence from it.
  if (words.size() >= 2 && words[1].find_first_not_of("0123456789") == std::string_view::npos)
    return InteractionFormat::sequences;
  throw_invalid(
      "{}: the first line '{}' is not that of a data set; give RecBole's .inter (a header `user_id:token item_id:token "
      "timestamp:float`), lines `user item item ...`, MovieLens lines `user::item::rating::time`, or Amazon reviews "
      "(JSON lines)",
      where, printable(first, shown_bytes));
}

/// The lines of a file without line ends (LF or CRLF), without a byte order mark and without blank lines at the end.
class DataLines {
 public:
  explicit DataLines(std::string_view content) : rest_(content) {
    if (rest_.starts_with("\xEF\xBB\xBF")) rest_.remove_prefix(3);
    const auto last = rest_.find_last_not_of(" \t\r\n");
    // Blanks at the end of the last line that holds something belong to it: a tab there is an empty last column.
    const auto end = last == std::string_view::npos ? 0 : std::min(rest_.find('\n', last), rest_.size());
    rest_ = rest_.substr(0, end);
    done_ = rest_.empty();
  }
  std::optional<DataLine> next() {
    if (done_) return std::nullopt;
    const auto end = rest_.find('\n');
    done_ = end == std::string_view::npos;
    std::string_view text = rest_.substr(0, end);
    if (!done_) rest_.remove_prefix(end + 1);
    if (text.ends_with('\r')) text.remove_suffix(1);
    return DataLine{text, ++number_};
  }

 private:
  std::string_view rest_;
  bool done_ = false;
  std::int64_t number_ = 0;
};

std::unique_ptr<LineParser> make_parser(std::string_view first, std::string_view where, RawInteractions& result) {
  result.format = format_of(first, where);
  switch (result.format) {
    case InteractionFormat::recbole:
      return std::make_unique<RecBoleParser>(result, first, where);
    case InteractionFormat::sequences:
      return std::make_unique<SequencesParser>(result);
    case InteractionFormat::movielens:
      return std::make_unique<MovieLensParser>(result);
    case InteractionFormat::amazon:
      return std::make_unique<AmazonParser>(result);
  }
  ASSERT(false, "unknown format");
}

/// Remembers the first line that is malformed, and counts the others.
class Faults {
 public:
  void add(const DataLine& line, std::string reason) {
    if (count_++ == 0) first_ = fmt::format("line {} {}: '{}'", line.number, reason, printable(line.text, shown_bytes));
  }
  void raise(std::string_view where, std::string_view allowed) const {
    CHECK(count_ == 0, "{}: {}{}; {}", where, first_, others(), allowed);
  }

 private:
  std::string others() const {
    return count_ < 2 ? "" : fmt::format(" ({} malformed)", counted_are(count_ - 1, "other line"));
  }
  std::int64_t count_ = 0;
  std::string first_;
};

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

bool time_fits(double time) {
  return std::isfinite(time) && std::abs(time) < 0x1p53;
}

std::uint32_t Names::number(std::string_view name) {
  const auto found = numbers_.find(name);
  if (found != numbers_.end()) return found->second;
  const auto number = static_cast<std::uint32_t>(names_.size());
  numbers_.emplace(names_.emplace_back(name), number);
  return number;
}

std::string LineParser::add(std::string_view user, std::string_view item, double time, std::int64_t line) {
  std::string fault = name_fault(user, "user");
  if (fault.empty()) fault = name_fault(item, "item");
  if (fault.empty())
    result_.interactions.push_back({result_.users.number(user), result_.items.number(item), time, line});
  return fault;
}

RawInteractions parse_interactions(std::string_view content, std::string_view where) {
  CHECK(!content.starts_with("\xFF\xFE") && !content.starts_with("\xFE\xFF"),
        "{}: UTF-16; convert it, for example with iconv -t UTF-8", where);
  DataLines lines(content);
  auto line = lines.next();
  CHECK(line, "{}: empty; give a data set", where);
  RawInteractions result;
  const auto parser = make_parser(line->text, where, result);
  if (result.format == InteractionFormat::recbole) line = lines.next();  // after the header
  CHECK(line, "{}: no interactions, only a header; give a data set", where);
  Faults faults;
  for (; line; line = lines.next()) {
    std::string fault = parser->read(*line);
    if (!fault.empty()) faults.add(*line, std::move(fault));
    CHECK(result.users.size() <= most_names && result.items.size() <= most_names,
          "{}: more than {} users or items up to line {}; give a smaller data set", where, most_names, line->number);
  }
  faults.raise(where, parser->allowed());
  return result;
}

}  // namespace gainlens::data
