#include "core/utf8.h"

#include <unicode/utf8.h>

#include <cstdint>

namespace gainlens {

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

}  // namespace gainlens
