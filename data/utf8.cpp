#include "data/utf8.h"

#include <unicode/utf8.h>

#include <cstdint>

namespace gainlens::data {

std::optional<std::size_t> first_invalid_utf8(std::string_view text) {
  const char* bytes = text.data();
  const auto length = static_cast<std::int64_t>(text.size());
  for (std::int64_t position = 0; position < length;) {
    const std::int64_t start = position;
    UChar32 code_point = 0;
    U8_NEXT(bytes, position, length, code_point);
    if (code_point < 0) return static_cast<std::size_t>(start);
  }
  return std::nullopt;
}

char32_t next_code_point(std::string_view text, std::size_t& position) {
  const char* bytes = text.data();
  UChar32 code_point = 0;
  U8_NEXT_UNSAFE(bytes, position, code_point);
  return static_cast<char32_t>(code_point);
}

void append_utf8(std::string& text, char32_t code_point) {
  char bytes[U8_MAX_LENGTH];
  int length = 0;
  U8_APPEND_UNSAFE(bytes, length, static_cast<UChar32>(code_point));
  text.append(bytes, static_cast<std::size_t>(length));
}

}  // namespace gainlens::data
