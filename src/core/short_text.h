#pragma once

#include "core/json.h"

#include <string>

namespace gainlens {

/// The value of a setting in the fewest characters: 0.5, 100, 1e-05, true, reml. A text is as in the JSON: not safe to
/// print.
std::string short_text(const Json& value);

}  // namespace gainlens
