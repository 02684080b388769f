#include "runfile/first_key.h"

#include "core/check.h"
#include "runfile/query_windows.h"

#include <charconv>
#include <limits>

namespace gainlens::runfile {

std::optional<std::int64_t> attention_window(std::string_view attention) {
  constexpr std::string_view prefix = "window:";
  if (attention == "global") return std::numeric_limits<std::int64_t>::max();
  if (!attention.starts_with(prefix)) return std::nullopt;
  const char* const end = attention.data() + attention.size();
  std::int64_t window = 0;
  const auto parsed = std::from_chars(attention.data() + prefix.size(), end, window);
  if (parsed.ec != std::errc() || parsed.ptr != end || window < 1) return std::nullopt;
  return window;
}

FirstKey first_key_visibility(const std::string& attention, std::int64_t tokens) {
  const auto window = attention_window(attention);
  CHECK(window, "attention kind '{}'; a run has 'global' or 'window:N' with N > 0", printable(attention));
  if (*window <= second_half_begin(tokens)) return FirstKey::hidden;
  return *window < tokens ? FirstKey::partly_hidden : FirstKey::seen;
}

}  // namespace gainlens::runfile
