#pragma once

#include "core/utf8.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace gainlens::tokenizers {

/// Reads the code point at `position` of valid UTF-8 and moves `position` to its end.
char32_t next_code_point(std::string_view text, std::size_t& position);

/// The code point at `position`, and the one that ends there (> 0), of valid UTF-8.
char32_t code_point(std::string_view text, std::size_t position);
char32_t last_code_point(std::string_view text, std::size_t end);

/// The code point of a text that has one only.
std::optional<char32_t> only_code_point(std::string_view text);

/// Where the last character of text[0, end), end > 0, starts.
std::size_t start_of_last(std::string_view text, std::size_t end);

void append_utf8(std::string& text, char32_t code_point);

}  // namespace gainlens::tokenizers
