#pragma once

#include <bit>
#include <cstdint>

namespace gainlens::formats {

/// The value of an IEEE 754 binary16 number, exact in float32; a NaN stays a NaN.
inline float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000u) << 16;
  const std::uint32_t exponent = half >> 10 & 0x1fu;
  const std::uint32_t fraction = half & 0x3ffu;
  if (exponent == 0) {  // zero or subnormal: the fraction counts in units of 2^-24
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(static_cast<float>(fraction) * 0x1p-24f) | sign);
  }
  const std::uint32_t widened =
      exponent == 31 ? 255 : exponent + (127 - 15);  // infinity and NaN keep the largest exponent
  return std::bit_cast<float>(sign | widened << 23 | fraction << 13);
}

}  // namespace gainlens::formats
