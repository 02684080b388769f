#pragma once

#include "core/utf8.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace gainlens::tokenizers {

/// Reads the code point at `position` of valid UTF-8 and moves `position` to its end.
char32_t next_code_point(std::string_view text, std::size_t& position);

void append_utf8(std::string& text, char32_t code_point);

}  // namespace gainlens::tokenizers
