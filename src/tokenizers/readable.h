#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace gainlens::tokenizers {

/// Any bytes as UTF-8 without NUL: what is no UTF-8 is written byte by byte as "<0xE2>", and so is NUL.
std::string readable(std::string_view bytes);

/// The byte that a piece of byte fallback stands for: "\n" for "<0x0A>". Nothing for any other text.
std::optional<std::string> byte_of_piece(std::string_view piece);

/// The piece with a space for each sign ▁ (U+2581).
std::string with_spaces(std::string_view piece);

}  // namespace gainlens::tokenizers
