#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace gainlens::data {

/// Byte offset of the first sequence that is not UTF-8 (overlong forms and surrogates count as such), or nothing.
std::optional<std::size_t> first_invalid_utf8(std::string_view text);

/// Reads the code point at `position` of valid UTF-8 and moves `position` behind it.
char32_t next_code_point(std::string_view text, std::size_t& position);

void append_utf8(std::string& text, char32_t code_point);

}  // namespace gainlens::data
