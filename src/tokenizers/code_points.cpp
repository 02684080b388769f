#include "tokenizers/code_points.h"

#include <unicode/utf8.h>

namespace gainlens::tokenizers {

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

}  // namespace gainlens::tokenizers
