#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::reports {

/// "1 head", "3 heads".
template <std::integral Count>
std::string counted(Count count, std::string_view noun) {
  return std::to_string(count) + ' ' + std::string(noun) + (count == 1 ? "" : "s");
}

/// "0-3, 7": ascending numbers with runs drawn together.
std::string number_ranges(const std::vector<std::int64_t>& numbers);
/// "layer 3", "layers 0-3, 7".
std::string layers_in_words(const std::vector<std::int64_t>& layers);

}  // namespace gainlens::reports
