#include "core/error.h"

namespace gainlens {

std::string printable(std::string_view text, std::size_t limit) {
  std::string shown;
  for (const char c : text.substr(0, limit)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      shown += fmt::format("\\x{:02x}", byte);
    } else {
      shown += c;
    }
  }
  if (text.size() > limit) shown += fmt::format("... ({} bytes)", text.size());
  return shown;
}

void throw_internal_error(const char* file, int line, const std::string& message) {
  throw InternalError(fmt::format("{}:{}: {}", file, line, message));
}

}  // namespace gainlens
