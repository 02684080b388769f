#include "core/json_words.h"

#include "core/error.h"

#include <string_view>

namespace gainlens {
namespace {

/// What stands between two texts; empty if they do not stand there.
std::string_view between(std::string_view text, std::string_view before, std::string_view behind) {
  const auto begin = text.find(before);
  if (begin == std::string_view::npos) return {};
  text.remove_prefix(begin + before.size());
  const auto end = behind.empty() ? text.size() : text.rfind(behind);
  return end == std::string_view::npos ? std::string_view() : text.substr(0, end);
}

std::string_view last_word(std::string_view text) {
  const auto space = text.rfind(' ');
  return space == std::string_view::npos ? text : text.substr(space + 1);
}

}  // namespace

std::string json_error_in_words(const Json::exception& error) {
  // Numbers of https://json.nlohmann.me/home/exceptions/; the last word of a type error is the type that was found.
  const std::string_view text = error.what();
  switch (error.id) {
    case 302: {
      const std::string_view needed = between(text, "type must be ", ", but is");
      return fmt::format("a value is of the type {}{}", printable(last_word(text), 40),
                         needed.empty() ? "" : fmt::format("; {} is needed", printable(needed, 40)));
    }
    case 304:
    case 305:
    case 306:
      return fmt::format("a value of the type {} stands where an object or an array is needed",
                         printable(last_word(text), 40));
    case 401:
      return "an array has too few entries";
    case 403:
      return fmt::format("the key '{}' is missing", printable(between(text, "key '", "' not found"), 60));
    default:
      return "it has another form than gainlens writes";
  }
}

}  // namespace gainlens
