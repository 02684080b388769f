#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace gainlens {

/// "1 head", "3 heads".
template <std::integral Count>
std::string counted(Count count, std::string_view noun) {
  return std::to_string(count) + ' ' + std::string(noun) + (count == 1 ? "" : "s");
}

/// "1 chunk is", "3 chunks are".
template <std::integral Count>
std::string counted_are(Count count, std::string_view noun) {
  return counted(count, noun) + (count == 1 ? " is" : " are");
}

}  // namespace gainlens
