#include "tokenizers/code_points.h"

#include <unicode/utf8.h>

namespace gainlens::tokenizers {

char32_t next_code_point(std::string_view text, std::size_t& position) {
  const char* bytes = text.data();
  UChar32 code_point = 0;
  U8_NEXT_UNSAFE(bytes, position, code_point);
  return static_cast<char32_t>(code_point);
}

char32_t code_point(std::string_view text, std::size_t position) {
  return next_code_point(text, position);
}

std::optional<char32_t> only_code_point(std::string_view text) {
  if (text.empty()) return std::nullopt;
  std::size_t position = 0;
  const char32_t character = next_code_point(text, position);
  return position == text.size() ? std::optional(character) : std::nullopt;
}

char32_t last_code_point(std::string_view text, std::size_t end) {
  return code_point(text, start_of_last(text, end));
}

std::size_t start_of_last(std::string_view text, std::size_t end) {
  do --end;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80);
  return end;
}

void append_utf8(std::string& text, char32_t code_point) {
  char bytes[U8_MAX_LENGTH];
  int length = 0;
  U8_APPEND_UNSAFE(bytes, length, static_cast<UChar32>(code_point));
  text.append(bytes, static_cast<std::size_t>(length));
}

}  // namespace gainlens::tokenizers
