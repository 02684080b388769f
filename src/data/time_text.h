#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gainlens::data {

/// Whether a time is finite and below 2^53. Larger whole numbers would be rounded, and interactions at different times
/// would become ties.
bool time_fits(double time);

/// Seconds from 1970-01-01T00:00:00Z to a date of ISO 8601: 2024-01-31, or with a time of day behind a T or a blank:
/// 23:59, 23:59:59 or 23:59:59.25, and behind it Z, +01:00, +0100 or nothing, which stands for UTC. Nothing for another
/// text, or for a day or a time of day that does not exist; a minute has no 60th second.
std::optional<double> seconds_of_date(std::string_view text);

/// "2024-01-31T23:59:59Z", with a fraction of a second where there is one. Years 0 to 9999; others as the number.
std::string date_of_seconds(double seconds);

/// Reads the time of a line as a number.
/// @returns  what is wrong with it, as the end of "line 7 ..."; empty if nothing is wrong
std::string read_time(std::string_view text, double& time);

/// The times of a file, which are all numbers or all dates.
class TimeColumn {
 public:
  /// @param unit  what `line` counts, in messages: "line" or "row"
  explicit TimeColumn(std::string_view unit = "line") : unit_(unit) {}
  /// @param line  its number, for messages about later lines
  /// @returns  as read_time()
  std::string read(std::string_view text, std::int64_t line, double& time);
  /// Likewise, of a time that is a number in the file.
  std::string read(double number, std::int64_t line, double& time);
  bool dates() const { return dates_; }

 private:
  /// Whether the times before are of another kind.
  bool differs(bool date, std::int64_t line);

  std::string_view unit_;
  bool dates_ = false;
  std::int64_t first_line_ = 0;  // that had a time; 0: none yet
};

}  // namespace gainlens::data
