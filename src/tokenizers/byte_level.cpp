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

}  // namespace

void append_byte_level(std::string_view bytes, std::string& text) {
  static const std::array<std::string, 256> alphabet = byte_alphabet();
  for (const char byte : bytes) text += alphabet[static_cast<unsigned char>(byte)];
}

}  // namespace gainlens::tokenizers
