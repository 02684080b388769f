#pragma once

#include <cstdlib>
#include <functional>
#include <optional>
#include <string>

namespace gainlens {

/// Value of an environment variable; empty where it is not set. Tests give their own function.
using Environment = std::function<std::optional<std::string>(const char* name)>;

/// The environment of this process.
inline Environment process_environment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* const value = std::getenv(name);
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

}  // namespace gainlens
