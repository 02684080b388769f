#pragma once

#include <functional>
#include <optional>
#include <string>

namespace gainlens {

/// Value of an environment variable; empty where it is not set. Tests give their own function.
using Environment = std::function<std::optional<std::string>(const char* name)>;

/// The environment of this process.
Environment process_environment();

}  // namespace gainlens
