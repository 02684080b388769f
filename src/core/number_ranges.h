#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens {

/// Ascending numbers in words, with three or more consecutive ones drawn together: "0-3, 7, 8".
/// @tparam Number  std::int64_t or std::uint64_t
/// @param to  what stands between the first and the last number of a range
template <std::integral Number = std::int64_t>
std::string number_ranges(const std::vector<Number>& numbers, std::string_view to = "-");

/// The numbers of a list without repeats, in order: "4", "2 or 4", "2, 4 or 8".
std::string either_number(std::vector<std::int64_t> numbers);

}  // namespace gainlens
