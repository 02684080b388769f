#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace gainlens::tokenizers {

/// Writes any bytes as printable characters, as GPT-2 does. Printable Latin-1 bytes stand for themselves. The other 68
/// bytes become, in order, U+0100 and the characters after it (the space becomes U+0120). Source: encoder.py of
/// openai/gpt-2, bytes_to_unicode.
void append_byte_level(std::string_view bytes, std::string& text);

/// The inverse: the bytes that a token of such characters stands for. Nothing if the text has other characters.
std::optional<std::string> byte_level_bytes(std::string_view text);

/// GPT-2's pattern of words: contractions, then letters, numbers, or other signs, each with at most one space before,
/// then white space.
inline constexpr std::string_view gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

}  // namespace gainlens::tokenizers
