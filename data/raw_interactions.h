#pragma once

#include "data/interactions.h"

#include <cstdint>
#include <deque>
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
  Names users, items;
  std::vector<RawInteraction> interactions;  ///< in the order of the file
};

/// Finds the format and reads every line.
/// @param content  the unpacked bytes of a file
/// @param where    names the file in messages
/// @throws InvalidArgument  as read_interactions(), for what one line can show
RawInteractions parse_interactions(std::string_view content, std::string_view where);

/// One line of a file, without its line end.
struct DataLine {
  std::string_view text;
  std::int64_t number = 0;  ///< from 1
};

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
  /// Adds one interaction after a check of its names. Returns as read().
  std::string add(std::string_view user, std::string_view item, double time, std::int64_t line);

  RawInteractions& result_;
};

/// Amazon reviews, which need a JSON parser (amazon_reviews.cpp).
class AmazonParser : public LineParser {
 public:
  explicit AmazonParser(RawInteractions& result);
  std::string read(const DataLine& line) override;
  std::string allowed() const override;
};

/// Whether a time is finite and below 2^53. Larger whole numbers would be rounded, and interactions at different times
/// would become ties.
bool time_fits(double time);

}  // namespace gainlens::data
