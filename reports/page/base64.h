#pragma once

#include <string>
#include <string_view>

namespace gainlens::reports {

/// Bytes as base64 with padding (RFC 4648, section 4), without line breaks.
std::string base64(std::string_view bytes);

}  // namespace gainlens::reports
