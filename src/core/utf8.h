#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace gainlens {

/// Byte offset of the first sequence that is not UTF-8. Overlong forms and surrogates are not UTF-8 either. Nothing if
/// the text is valid.
std::optional<std::size_t> first_invalid_utf8(std::string_view text);

}  // namespace gainlens
