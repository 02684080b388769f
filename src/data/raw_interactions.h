#pragma once

#include "data/delimited.h"
#include "data/interaction_columns.h"
#include "data/interactions.h"
#include "data/time_text.h"

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace gainlens::data {

/// Different names, numbered from 0 in the order in which they come.
class Names {
 public:
  /// The number of a name; a new number if the name is new.
  std::uint32_t number(std::string_view name);
  std::size_t size() const { return names_.size(); }
  const std::string& operator[](std::size_t number) const { return names_[number]; }

 private:
  std::deque<std::string> names_;  // its elements do not move: the keys below point into them
  std::unordered_map<std::string_view, std::uint32_t> numbers_;
};

/// An interaction as it stands in the file.
struct RawInteraction {
  std::uint32_t user = 0;
  std::uint32_t item = 0;
  double time = 0;        ///< 0 if the file has no times
  std::int64_t line = 0;  ///< from 1
};

/// The content of a file before anything is sorted, dropped or checked for repeats.
struct RawInteractions {
  InteractionFormat format = InteractionFormat::sequences;
  bool timed = false;
  std::optional<ReadColumns> columns;  ///< of tables and JSON lines with other keys
  Names users, items;
  std::vector<RawInteraction> interactions;  ///< in the order of the file

  /// Adds one interaction after a check of its names.
  /// @returns  what is wrong with them, as the end of "line 7 ..."; empty if nothing is wrong
  std::string add(std::string_view user, std::string_view item, double time, std::int64_t line);
  /// What RawInteraction::line counts, in messages: "line" or "row".
  std::string_view unit() const { return unit_of(format); }
  /// Called after each line or row: makes room for more interactions.
  /// @throws InvalidArgument  more users or items than ids, or more interactions than the memory can hold; `where`
  /// names
  ///     the file, `line` the last one that was read
  void make_room(std::string_view where, std::int64_t line);
};

/// A file, in messages and by its name.
struct NamedFile {
  std::string_view where;         ///< for messages
  std::optional<char> delimiter;  ///< delimiter_of_file()
};

/// Remembers the first line or row that is malformed, and counts the others.
class Faults {
 public:
  /// @param unit  "line" or "row"
  explicit Faults(std::string_view unit) : unit_(unit) {}
  /// @param text  of the line, not trusted; empty: not shown
  void add(std::int64_t line, std::string_view reason, std::string_view text = {});
  /// @param allowed  what each line has to be
  /// @throws InvalidArgument  there was one
  void raise(std::string_view where, std::string_view allowed) const;

 private:
  std::string_view unit_;
  std::int64_t count_ = 0;
  std::string first_;
};

/// Finds the format and reads every line.
/// @param content  the unpacked bytes of the file
/// @throws InvalidArgument  as read_interactions(), for what one line can show
RawInteractions parse_interactions(std::string_view content, const NamedFile& file, const ColumnOptions& options);

/// Reads lines of one format. The parsers of the formats derive from it.
class LineParser {
 public:
  explicit LineParser(RawInteractions& result) : result_(result) {}
  virtual ~LineParser() = default;
  LineParser(const LineParser&) = delete;
  LineParser& operator=(const LineParser&) = delete;

  /// Adds the interactions of a line. Returns what is wrong with the line, as the end of "line 7 ..."; empty if nothing
  /// is wrong.
  virtual std::string read(const DataLine& line) = 0;
  /// What each line has to be, for messages.
  virtual std::string allowed() const = 0;

 protected:
  std::string add(std::string_view user, std::string_view item, double time, std::int64_t line) {
    return result_.add(user, item, time, line);
  }

  RawInteractions& result_;
};

/// JSON lines (json_interactions.cpp): Amazon's reviews, and objects with other keys.
class JsonParser : public LineParser {
 public:
  /// @param first  line of the file, whose keys are those that options can name or that are recognised
  /// @throws InvalidArgument  it is no JSON object; as find_columns()
  JsonParser(RawInteractions& result, const DataLine& first, const ColumnOptions& options, std::string_view where);
  std::string read(const DataLine& line) override;
  std::string allowed() const override;

 private:
  std::vector<std::string> keys_;  // user, item and, if there is one, time
  TimeColumn times_;
};

/// A table (table_interactions.cpp).
class TableParser : public LineParser {
 public:
  /// @param first  line of the file
  /// @throws InvalidArgument  a broken header, also one that seems to be split by another delimiter; as find_columns()
  TableParser(RawInteractions& result, const DataLine& first, char delimiter, const ColumnOptions& options,
              std::string_view where);
  std::string read(const DataLine& line) override;
  std::string allowed() const override;

 private:
  char delimiter_;
  Quotes quotes_;
  std::size_t columns_ = 0;
  ColumnPlaces places_;
  TimeColumn times_;
  std::vector<std::string> fields_;
};

}  // namespace gainlens::data
