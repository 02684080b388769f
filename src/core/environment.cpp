#include "core/environment.h"

#include <cstdlib>

namespace gainlens {

Environment process_environment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* const value = std::getenv(name);
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

}  // namespace gainlens
