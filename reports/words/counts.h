#pragma once

#include "core/counted.h"
#include "core/number_ranges.h"

#include <cstdint>
#include <string>
#include <vector>

namespace gainlens::reports {

/// "layer 3", "layers 0-3, 7".
std::string layers_in_words(const std::vector<std::int64_t>& layers);

}  // namespace gainlens::reports
