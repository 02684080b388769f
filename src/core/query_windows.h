#pragma once

#include <cstdint>

namespace gainlens {

/// First query of the last quarter of a chunk of length T: ceil(3T/4). Source: docs/method.md, "Sweep protocol".
constexpr std::int64_t last_quarter_begin(std::int64_t length) {
  return length - length / 4;
}

/// First query of the second half: ceil(T/2).
constexpr std::int64_t second_half_begin(std::int64_t length) {
  return length - length / 2;
}

}  // namespace gainlens
