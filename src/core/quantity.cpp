#include "core/quantity.h"

#include "core/check.h"
#include "core/checked.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace gainlens {

std::int64_t parse_count(std::string_view text, std::string_view what, const LeastCount& least) {
  const std::string_view whole = text;
  std::int64_t unit = 1;
  if (!text.empty() && (text.back() == 'k' || text.back() == 'K')) {
    unit = 1024;
    text.remove_suffix(1);
  }
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  CHECK(error == std::errc() && end == text.data() + text.size(),
        "{}: '{}' is not a count; write a whole number such as 512, or 4k for 4096", what, printable(whole, 40));
  if (count > 0) count = checked_mul(count, unit, what);
  check_least(count, whole, what, least);
  return count;
}

std::vector<std::int64_t> parse_counts(std::string_view text, std::string_view what, const LeastCount& least) {
  std::vector<std::int64_t> counts;
  while (true) {
    const auto comma = text.find(',');
    counts.push_back(parse_count(text.substr(0, comma), what, least));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

void check_least(std::int64_t count, std::string_view shown, std::string_view what, const LeastCount& least) {
  CHECK(count >= least.count, "{}: {}; must be at least {}{}{}", what, printable(shown, 40), least.count,
        least.reason.empty() ? "" : ", ", least.reason);
}

std::string format_count(std::int64_t count) {
  return count >= 1024 && count % 1024 == 0 ? fmt::format("{}k", count / 1024) : fmt::format("{}", count);
}

std::string format_bytes(std::uint64_t bytes) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  // From 1023.5 on the value would round up to 1024, so it is shown in the next unit. The same holds below for 59.95 s.
  while (value >= 1023.5 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.{}f} {}", value, value < 10 ? 1 : 0, units[unit]);
}

std::string format_duration(double seconds) {
  if (!(seconds >= 0 && seconds < 1e15)) return "?";
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

}  // namespace gainlens
