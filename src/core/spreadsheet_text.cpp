#include "core/spreadsheet_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

namespace gainlens {
namespace {

/// "-5", "+2.5e3": digits, at most one point and an exponent.
bool is_number(std::string_view text) {
  const bool plus = text.starts_with('+');
  if (plus) text.remove_prefix(1);  // from_chars takes none
  if (text.starts_with('+') || (plus && text.starts_with('-')) ||
      text.find_first_not_of("+-.0123456789eE") != std::string_view::npos)
    return false;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

bool looks_like_formula(std::string_view text) {
  // the last four are the full-width forms of the first, which some spreadsheets take for them
  constexpr std::array<std::string_view, 11> starts = {"=",  "+",      "-",      "@",      "\t",    "\r",
                                                       "\n", "\uFF1D", "\uFF0B", "\uFF0D", "\uFF20"};
  const std::string_view behind = text.substr(std::min(text.find_first_not_of('\''), text.size()));
  return std::any_of(starts.begin(), starts.end(), [&](std::string_view start) { return behind.starts_with(start); }) &&
         !is_number(text);
}

std::string_view without_formula_mark(std::string_view text) {
  return text.starts_with('\'') && looks_like_formula(text) ? text.substr(1) : text;
}

}  // namespace gainlens
