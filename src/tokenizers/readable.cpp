#include "tokenizers/readable.h"

#include "core/utf8.h"
#include "tokenizers/tokenizer.h"

#include <fmt/format.h>

#include <charconv>

namespace gainlens::tokenizers {

std::string readable(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const std::size_t valid = first_invalid_utf8(bytes).value_or(bytes.size());
    const std::size_t plain = bytes.substr(0, valid).find('\0');
    const std::size_t good = std::min(plain, valid);
    text += bytes.substr(0, good);
    if (good == bytes.size()) break;
    text += fmt::format("<0x{:02X}>", static_cast<unsigned char>(bytes[good]));
    bytes.remove_prefix(good + 1);
  }
  return text;
}

std::optional<std::string> byte_of_piece(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || !piece.ends_with('>')) return std::nullopt;
  unsigned char byte = 0;
  const char* end = piece.data() + 5;
  const auto [stop, failure] = std::from_chars(piece.data() + 3, end, byte, 16);
  if (failure != std::errc() || stop != end) return std::nullopt;
  return std::string(1, static_cast<char>(byte));
}

std::string with_spaces(std::string_view piece) {
  constexpr std::string_view sign = "\xE2\x96\x81";  // U+2581
  std::string text;
  for (std::size_t place = piece.find(sign); place != std::string_view::npos; place = piece.find(sign)) {
    text.append(piece.substr(0, place));
    text += ' ';
    piece.remove_prefix(place + sign.size());
  }
  return text.append(piece);
}

std::string Tokenizer::decode(std::span<const TokenId> ids) const {
  std::string bytes;
  for (const TokenId id : ids) bytes += token_bytes(id);
  return readable(bytes);
}

}  // namespace gainlens::tokenizers
