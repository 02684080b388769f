#include "tokenizers/byte_level.h"

#include "tokenizers/code_points.h"

#include <array>

namespace gainlens::tokenizers {
namespace {

std::array<std::string, 256> byte_alphabet() {
  std::array<std::string, 256> alphabet;
  char32_t next_free = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    append_utf8(alphabet[byte], printable ? byte : next_free++);
  }
  return alphabet;
}

const std::array<std::string, 256>& alphabet() {
  static const std::array<std::string, 256> letters = byte_alphabet();
  return letters;
}

/// [code point] The byte that it stands for, or -1.
std::array<int, 0x100 + 68> bytes_of_alphabet() {
  std::array<int, 0x100 + 68> bytes;
  bytes.fill(-1);
  for (std::size_t byte = 0; byte < 256; ++byte) bytes.at(code_point(alphabet()[byte], 0)) = static_cast<int>(byte);
  return bytes;
}

}  // namespace

void append_byte_level(std::string_view bytes, std::string& text) {
  for (const char byte : bytes) text += alphabet()[static_cast<unsigned char>(byte)];
}

std::optional<std::string> byte_level_bytes(std::string_view text) {
  static const std::array<int, 0x100 + 68> bytes = bytes_of_alphabet();
  if (first_invalid_utf8(text)) return std::nullopt;
  std::string result;
  for (std::size_t position = 0; position < text.size();) {
    const char32_t letter = next_code_point(text, position);
    if (letter >= bytes.size() || bytes[letter] < 0) return std::nullopt;
    result += static_cast<char>(bytes[letter]);
  }
  return result;
}

}  // namespace gainlens::tokenizers
