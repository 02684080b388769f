#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens {

/// The smallest count that is allowed.
struct LeastCount {
  std::int64_t count = 1;
  std::string_view reason;  ///< how the message ends: "so that the last quarter holds a query"; may be empty
};

/// A count as people write it: "512", "1k" (1024), "10k".
/// @param what  names the option in messages
/// @throws InvalidArgument  not such a number, too small, or too large
std::int64_t parse_count(std::string_view text, std::string_view what, const LeastCount& least = {});

/// Comma-separated counts, sorted, without repeats. Throws as parse_count; also when the list is empty.
std::vector<std::int64_t> parse_counts(std::string_view text, std::string_view what, const LeastCount& least = {});

/// @param shown  the count as it was written
/// @throws InvalidArgument  the count is too small
void check_least(std::int64_t count, std::string_view shown, std::string_view what, const LeastCount& least);

/// "1k" for 1024, "6k" for 6144, "1000" for 1000: the inverse of parse_count.
std::string format_count(std::int64_t count);

/// "3.2 GiB", "17 KiB", "12 B".
std::string format_bytes(std::uint64_t bytes);

/// "1 h 02 min", "3 min 05 s", "4.2 s".
std::string format_duration(double seconds);

}  // namespace gainlens
