#include "core/terminal_text.h"

#include <fmt/format.h>
#include <unicode/utf8.h>

#include <algorithm>

namespace gainlens {
namespace {

bool is_obeyed(UChar32 character) {
  if (character < 0x20) return true;  // negative: not UTF-8
  if (character >= 0x7f && character < 0xa0) return true;
  return (character >= 0x202a && character <= 0x202e) || (character >= 0x2066 && character <= 0x2069);
}

/// @param kept    characters that stay as they are
/// @param escape  makes the text that stands for a character, of its code point and its bytes
template <typename Escape>
std::string with_escapes(std::string_view text, std::string_view kept, const Escape& escape) {
  std::string shown;
  shown.reserve(text.size());
  for (std::size_t begin = 0, next = 0; begin < text.size(); begin = next) {
    UChar32 character = 0;
    U8_NEXT(text.data(), next, text.size(), character);
    const std::string_view bytes = text.substr(begin, next - begin);
    if (is_obeyed(character) && kept.find(bytes) == kept.npos) {
      shown += escape(character, bytes);
    } else {
      shown += bytes;
    }
  }
  return shown;
}

std::string hexadecimal(UChar32, std::string_view bytes) {
  std::string escaped;
  for (const char byte : bytes) escaped += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  return escaped;
}

}  // namespace

std::string terminal_text(std::string_view text) {
  return with_escapes(text, "\n\t", hexadecimal);
}

std::string terminal_line(std::string_view text) {
  return with_escapes(text, "", hexadecimal);
}

std::string terminal_json(std::string_view json) {
  return with_escapes(json, "\n\t", [](UChar32 character, std::string_view) {
    return fmt::format("\\u{:04x}", static_cast<unsigned>(std::max(character, 0)));
  });
}

}  // namespace gainlens
