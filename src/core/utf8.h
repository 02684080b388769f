#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace gainlens {

/// Byte offset of the first sequence that is not UTF-8 (overlong forms and surrogates count as such), or nothing.
std::optional<std::size_t> first_invalid_utf8(std::string_view text);

}  // namespace gainlens
