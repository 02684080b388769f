// The formats with blocks of 256 elements. Each group of 16 or 32 elements has a scale of a few bits. One or two halves
// (16-bit floats) scale these scales. Roundings happen in the order of the Python package `gguf`: a group's scale is
// rounded to float before it is multiplied with its elements. Notation as in dequantise.cpp.
#include "formats/dequantise_blocks.h"

#include <array>

namespace gainlens::formats {
namespace {

/// Scales and minima of the eight groups of 32 elements in q4_k and q5_k.
struct ScalesAndMinima {
  std::array<std::uint8_t, 8> scale, minimum;  // six bits each
};

/// Unpacks twelve bytes. Groups 0 to 3: the scale is in the low six bits of bytes 0..4, the minimum in the low six bits
/// of bytes 4..8. Groups 4 to 7: bytes 8..12 hold four bits of both (scale low, minimum high), and the top of bytes
/// 0..4 (scale) and 4..8 (minimum) holds two more bits.
ScalesAndMinima unpack(const std::uint8_t* bytes) {
  ScalesAndMinima result{};
  for (std::size_t i = 0; i < 4; ++i) {
    const unsigned scale = bytes[i], minimum = bytes[i + 4], both = bytes[i + 8];
    result.scale[i] = static_cast<std::uint8_t>(scale & 63);
    result.minimum[i] = static_cast<std::uint8_t>(minimum & 63);
    result.scale[i + 4] = static_cast<std::uint8_t>((both & 15) | (scale >> 6) << 4);
    result.minimum[i + 4] = static_cast<std::uint8_t>(both >> 4 | (minimum >> 6) << 4);
  }
  return result;
}

}  // namespace

/// element = scale * two bits - minimum
/// - block[0..16]: a byte for each group of 16 elements, four bits of scale (low) and four bits of minimum (high)
/// - block[16..80]: two bits for each element. Byte j of the first 32 bytes holds the elements j + 32 k with k = 0..3,
///   from its lowest bits up. The other 32 bytes hold the second half of the elements in the same way.
/// - half block[80..82] scales the scales, half block[82..84] the minima
void q2_k(const std::uint8_t* block, float* values) {
  const std::uint8_t* bits = block + 16;
  const float scale_of_scales = half_at(block + 80), scale_of_minima = half_at(block + 82);
  for (std::size_t group = 0; group < 16; ++group) {
    const float scale = scale_of_scales * static_cast<float>(block[group] & 15);
    const float minimum = scale_of_minima * static_cast<float>(block[group] >> 4);
    const std::uint8_t* source = bits + group / 8 * 32 + group % 2 * 16;
    const unsigned shift = group / 2 % 4 * 2;
    for (int i = 0; i < 16; ++i) values[group * 16 + i] = scale * static_cast<float>(source[i] >> shift & 3) - minimum;
  }
}

/// element = scale * (two bits - (third bit ? 0 : 4))
/// - block[0..32]: the third bit of each element. Bit k of byte j belongs to element 32 k + j.
/// - block[32..96]: two bits of each element, as in q2_k
/// - block[96..108]: six bits of scale for each group of 16. Scale g has its low four bits in byte g % 8 of the twelve
///   (groups 8 to 15 in the upper half of the byte). Two more bits are in byte 8 + g % 4, from bit 2 (g / 4) on. 32 is
///   subtracted from each scale.
/// - half block[108..110] scales the scales
void q3_k(const std::uint8_t* block, float* values) {
  const std::uint8_t *third_bits = block, *bits = block + 32, *scales = block + 96;
  const float scale_of_scales = half_at(block + 108);
  for (std::size_t group = 0; group < 16; ++group) {
    const int low = scales[group % 8] >> (group / 8 * 4) & 15;
    const int high = scales[8 + group % 4] >> (group / 4 * 2) & 3;
    const float scale = scale_of_scales * static_cast<float>((low | high << 4) - 32);
    const std::uint8_t* source = bits + group / 8 * 32 + group % 2 * 16;
    const std::uint8_t* third = third_bits + group % 2 * 16;
    const unsigned shift = group / 2 % 4 * 2, third_shift = group / 2;
    for (int i = 0; i < 16; ++i) {
      const int offset = (third[i] >> third_shift & 1) * 4 - 4;
      values[group * 16 + i] = scale * static_cast<float>((source[i] >> shift & 3) + offset);
    }
  }
}

/// element = scale * four bits - minimum
/// - half block[0..2] scales the scales, half block[2..4] the minima
/// - block[4..16]: scales and minima of groups of 32, see unpack()
/// - block[16..144]: four bits for each element. In each 32 bytes the low bits are one group and the high bits the next
///   group.
void q4_k(const std::uint8_t* block, float* values) {
  const float scale_of_scales = half_at(block), scale_of_minima = half_at(block + 2);
  const ScalesAndMinima groups = unpack(block + 4);
  for (std::size_t group = 0; group < 8; ++group) {
    const float scale = scale_of_scales * static_cast<float>(groups.scale[group]);
    const float minimum = scale_of_minima * static_cast<float>(groups.minimum[group]);
    const std::uint8_t* source = block + 16 + group / 2 * 32;
    const unsigned shift = group % 2 * 4;
    for (int i = 0; i < 32; ++i) values[group * 32 + i] = scale * static_cast<float>(source[i] >> shift & 15) - minimum;
  }
}

/// The same as q4_k, with five bits for each element:
/// - block[16..48]: the fifth bit. Bit g of byte i belongs to element i of group g.
/// - block[48..176]: the other four bits, as in q4_k
void q5_k(const std::uint8_t* block, float* values) {
  const float scale_of_scales = half_at(block), scale_of_minima = half_at(block + 2);
  const ScalesAndMinima groups = unpack(block + 4);
  const std::uint8_t* fifth_bits = block + 16;
  for (std::size_t group = 0; group < 8; ++group) {
    const float scale = scale_of_scales * static_cast<float>(groups.scale[group]);
    const float minimum = scale_of_minima * static_cast<float>(groups.minimum[group]);
    const std::uint8_t* source = block + 48 + group / 2 * 32;
    const unsigned shift = group % 2 * 4;
    for (int i = 0; i < 32; ++i) {
      const int number = (source[i] >> shift & 15) | (fifth_bits[i] >> group & 1) << 4;
      values[group * 32 + i] = scale * static_cast<float>(number) - minimum;
    }
  }
}

/// element = scale * (six bits - 32)
/// - block[0..128]: the low four bits of each element. Each half of the elements has 64 of these bytes: their low bits
///   are its elements 0..64, their high bits the next 64.
/// - block[128..192]: the two upper bits. Each half of the elements has 32 of these bytes: byte j holds the elements j
///   + 32 k with k = 0..3, from its lowest bits up.
/// - block[192..208]: an int8 scale for each group of 16
/// - half block[208..210] scales the scales
void q6_k(const std::uint8_t* block, float* values) {
  const auto* scales = reinterpret_cast<const std::int8_t*>(block + 192);
  const float scale_of_scales = half_at(block + 208);
  for (std::size_t group = 0; group < 16; ++group) {
    const float scale = scale_of_scales * static_cast<float>(scales[group]);
    const std::size_t half = group / 8, place = group % 8 * 16;  // within the half's 128 elements
    const std::uint8_t* low = block + half * 64 + place % 64;
    const std::uint8_t* high = block + 128 + half * 32 + place % 32;
    const unsigned low_shift = place / 64 * 4, high_shift = place / 32 * 2;
    for (int i = 0; i < 16; ++i) {
      const int number = (low[i] >> low_shift & 15) | (high[i] >> high_shift & 3) << 4;
      values[group * 16 + i] = scale * static_cast<float>(number - 32);
    }
  }
}

/// element = scale * uneven_levels[four bits]
/// - half block[0..2] scales the scales
/// - block[2..4]: the two upper bits of each scale. Group g of 32 elements has the bits 2 g and 2 g + 1 of this number.
/// - block[4..8]: the four lower bits of each scale, two groups in a byte, the even one in its low bits. 32 is
/// subtracted
///   from each scale.
/// - block[8..136]: 16 bytes for each group: its first 16 elements in the low bits, the others in the high bits
void iq4_xs(const std::uint8_t* block, float* values) {
  const float scale_of_scales = half_at(block);
  const int upper = block[2] | block[3] << 8;
  for (std::size_t group = 0; group < 8; ++group) {
    const int low = block[4 + group / 2] >> (group % 2 * 4) & 15;
    const int high = upper >> (group * 2) & 3;
    const float scale = scale_of_scales * static_cast<float>((low | high << 4) - 32);
    const std::uint8_t* source = block + 8 + group * 16;
    for (int i = 0; i < 16; ++i) {
      values[group * 32 + i] = scale * uneven_levels[source[i] & 15];
      values[group * 32 + i + 16] = scale * uneven_levels[source[i] >> 4];
    }
  }
}

}  // namespace gainlens::formats
