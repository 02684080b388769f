#pragma once

#include "formats/half.h"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace gainlens::formats {

static_assert(std::endian::native == std::endian::little, "blocks are little-endian and are read without swapping");

inline std::uint32_t u32_at(const std::uint8_t* bytes) {
  std::uint32_t number;
  std::memcpy(&number, bytes, sizeof number);
  return number;
}

inline float half_at(const std::uint8_t* bytes) {
  return half_to_float(static_cast<std::uint16_t>(bytes[0] | bytes[1] << 8));
}

// Each function turns one block (bytes_per_block bytes) into 256 values. dequantise_k.cpp describes the layouts.
void q2_k(const std::uint8_t* block, float* values);
void q3_k(const std::uint8_t* block, float* values);
void q4_k(const std::uint8_t* block, float* values);
void q5_k(const std::uint8_t* block, float* values);
void q6_k(const std::uint8_t* block, float* values);
void iq4_xs(const std::uint8_t* block, float* values);

/// The 16 levels of IQ4_NL and IQ4_XS, by the four bits of an element. They lie closer together near zero.
constexpr std::array<float, 16> uneven_levels{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

}  // namespace gainlens::formats
