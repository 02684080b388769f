#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens {

/// Ascending numbers in words, with three or more consecutive ones drawn together: "0-3, 7, 8".
/// @param to  what stands between the first and the last number of a range
std::string number_ranges(const std::vector<std::int64_t>& numbers, std::string_view to = "-");

}  // namespace gainlens
