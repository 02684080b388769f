#include "core/error.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <cstdint>

namespace gainlens {
namespace {

/// Whether a terminal shows the character as itself. False for control characters (C1 too), line breaks, and marks that
/// reorder or hide text.
bool shows_as_itself(UChar32 character) {
  constexpr std::uint32_t hidden = U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CS_MASK | U_GC_ZL_MASK | U_GC_ZP_MASK;
  return character >= 0 && (U_GET_GC_MASK(character) & hidden) == 0;  // negative: not UTF-8
}

}  // namespace

std::string printable(std::string_view text, std::size_t limit) {
  std::string shown;
  const std::size_t end = std::min(text.size(), limit);
  for (std::size_t begin = 0, next = 0; begin < end; begin = next) {
    UChar32 character = 0;
    U8_NEXT(text.data(), next, text.size(), character);
    if (next > limit) break;  // half a character would not be UTF-8
    for (const char c : text.substr(begin, next - begin)) {
      shown += shows_as_itself(character) ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  if (text.size() > limit) shown += fmt::format("... ({} bytes)", text.size());
  return shown;
}

void throw_internal_error(const char* file, int line, const std::string& message) {
  throw InternalError(fmt::format("{}:{}: {}", file, line, message));
}

}  // namespace gainlens
