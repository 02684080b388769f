#pragma once

#include "core/counted.h"

#include <cstdint>
#include <string>
#include <vector>

namespace gainlens::reports {

/// "0-3, 7": ascending numbers with runs drawn together.
std::string number_ranges(const std::vector<std::int64_t>& numbers);
/// "layer 3", "layers 0-3, 7".
std::string layers_in_words(const std::vector<std::int64_t>& layers);

}  // namespace gainlens::reports
