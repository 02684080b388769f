#include "interventions/index_range.h"

#include "core/check.h"

#include <fmt/format.h>

#include <charconv>

namespace gainlens::interventions {
namespace {

/// @param whole  the text that the number is a part of, for messages
std::int64_t read_index(std::string_view index, std::string_view whole, std::string_view what) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(index.data(), index.data() + index.size(), number);
  CHECK(error == std::errc() && end == index.data() + index.size() && number >= 0 && number < (std::int64_t{1} << 62),
        "{}{} must be a whole number from 0 on, or START:STOP", what, printable(whole, 40));
  return number;
}

}  // namespace

std::string IndexRange::text() const {
  return size() == 1 ? fmt::format("{}", first) : fmt::format("{}:{}", first, end);
}

IndexRange parse_index_range(std::string_view text, std::string_view what) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return IndexRange::one(read_index(text, text, what));
  const IndexRange range{read_index(text.substr(0, colon), text, what), read_index(text.substr(colon + 1), text, what)};
  CHECK(range.first < range.end, "{}{} holds nothing: STOP is not included, and must be larger than START", what,
        printable(text, 40));
  return range;
}

}  // namespace gainlens::interventions
