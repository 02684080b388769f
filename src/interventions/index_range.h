#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gainlens::interventions {

/// Consecutive positions or keys, from 0: those from `first` on, before `end`.
struct IndexRange {
  std::int64_t first = 0;
  std::int64_t end = 1;

  static IndexRange one(std::int64_t index) { return {index, index + 1}; }
  std::int64_t size() const { return end - first; }
  bool meets(const IndexRange& other) const { return first < other.end && other.first < end; }
  /// "3", or "41:81".
  std::string text() const;

  friend bool operator==(const IndexRange&, const IndexRange&) = default;
};

/// Reads "3" or "41:81", whose end is not included.
/// @param what  for messages: "--targets"
/// @throws InvalidArgument  no such text, a number below 0, a range that holds nothing
IndexRange parse_index_range(std::string_view text, std::string_view what);

}  // namespace gainlens::interventions
