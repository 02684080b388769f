#pragma once

#include <optional>
#include <string>
#include <string_view>

// What every locale reads alike.

namespace gainlens {

/// The whole text as a number; nothing if it is none, infinite or not a number.
std::optional<double> finite_number(std::string_view text);

/// The letters A to Z as a to z; every other byte stays.
std::string ascii_lower(std::string_view text);

}  // namespace gainlens
