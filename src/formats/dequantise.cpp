#include "formats/dequantise.h"

#include "core/check.h"
#include "formats/dequantise_blocks.h"

namespace gainlens::formats {
namespace {

// Notation: block[a..b] are the bytes a to b - 1 of a block; `half` is a 16-bit float; low and high bits are the lower
// and upper four bits of a byte. In the formats of 32 elements, element i of the first half takes the low bits of its
// byte and element i + 16 the high ones.

constexpr int half_block = 16;

/// scale = half block[0..2]; element i = scale * int8 block[2 + i]
void q8_0(const std::uint8_t* block, float* values) {
  const float scale = half_at(block);
  for (int i = 0; i < 32; ++i) values[i] = scale * static_cast<float>(static_cast<std::int8_t>(block[2 + i]));
}

/// scale = half block[0..2]; element = scale * (four bits - 8)
void q4_0(const std::uint8_t* block, float* values) {
  const float scale = half_at(block);
  for (int i = 0; i < half_block; ++i) {
    const int byte = block[2 + i];
    values[i] = scale * static_cast<float>((byte & 15) - 8);
    values[i + half_block] = scale * static_cast<float>((byte >> 4) - 8);
  }
}

/// scale = half block[0..2], minimum = half block[2..4]; element = scale * four bits + minimum
void q4_1(const std::uint8_t* block, float* values) {
  const float scale = half_at(block), minimum = half_at(block + 2);
  for (int i = 0; i < half_block; ++i) {
    const int byte = block[4 + i];
    values[i] = scale * static_cast<float>(byte & 15) + minimum;
    values[i + half_block] = scale * static_cast<float>(byte >> 4) + minimum;
  }
}

/// scale = half block[0..2]; bit i of block[2..6] is the fifth bit of element i; element = scale * (five bits - 16)
void q5_0(const std::uint8_t* block, float* values) {
  const float scale = half_at(block);
  const std::uint32_t fifth = u32_at(block + 2);
  for (int i = 0; i < half_block; ++i) {
    const std::uint32_t byte = block[6 + i];
    const std::uint32_t first = (byte & 15) | (fifth >> i & 1) << 4;
    const std::uint32_t second = byte >> 4 | (fifth >> (i + half_block) & 1) << 4;
    values[i] = scale * static_cast<float>(static_cast<int>(first) - 16);
    values[i + half_block] = scale * static_cast<float>(static_cast<int>(second) - 16);
  }
}

/// scale = half block[0..2], minimum = half block[2..4]; fifth bits in block[4..8] as in q5_0; element = scale * five
/// bits + minimum
void q5_1(const std::uint8_t* block, float* values) {
  const float scale = half_at(block), minimum = half_at(block + 2);
  const std::uint32_t fifth = u32_at(block + 4);
  for (int i = 0; i < half_block; ++i) {
    const std::uint32_t byte = block[8 + i];
    const std::uint32_t first = (byte & 15) | (fifth >> i & 1) << 4;
    const std::uint32_t second = byte >> 4 | (fifth >> (i + half_block) & 1) << 4;
    values[i] = scale * static_cast<float>(static_cast<int>(first)) + minimum;
    values[i + half_block] = scale * static_cast<float>(static_cast<int>(second)) + minimum;
  }
}

/// The numbers of the four-bit float E2M1, doubled so that they are whole; the scale is halved instead.
constexpr float doubled_e2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// 2^(exponent - 128): half of the E8M0 value. It is exact; the two smallest are subnormal. The NaN of E8M0, 255, gives
/// 2^127, as in the Python package `gguf`.
float half_of_e8m0(std::uint8_t exponent) {
  return std::bit_cast<float>(exponent < 2 ? std::uint32_t{0x00200000} << exponent
                                           : (std::uint32_t{exponent} - 1) << 23);
}

/// scale = E8M0 block[0]; element = scale * E2M1 of four bits. Source: OCP Microscaling Formats 1.0.
void mxfp4(const std::uint8_t* block, float* values) {
  const float scale = half_of_e8m0(block[0]);
  for (int i = 0; i < half_block; ++i) {
    const int byte = block[1 + i];
    values[i] = scale * doubled_e2m1[byte & 15];
    values[i + half_block] = scale * doubled_e2m1[byte >> 4];
  }
}

/// scale = half block[0..2]; element = scale * uneven_levels[four bits]
void iq4_nl(const std::uint8_t* block, float* values) {
  const float scale = half_at(block);
  for (int i = 0; i < half_block; ++i) {
    const int byte = block[2 + i];
    values[i] = scale * uneven_levels[byte & 15];
    values[i + half_block] = scale * uneven_levels[byte >> 4];
  }
}

template <auto one_block>
void each_block(DType dtype, std::span<const std::byte> blocks, std::span<float> values) {
  const std::size_t stride = bytes_per_block(dtype), elements = elements_per_block(dtype);
  const auto* block = reinterpret_cast<const std::uint8_t*>(blocks.data());
  for (std::size_t i = 0; i < blocks.size() / stride; ++i) one_block(block + i * stride, values.data() + i * elements);
}

}  // namespace

bool is_quantised(DType dtype) {
  return elements_per_block(dtype) > 1;
}

void dequantise(DType dtype, std::span<const std::byte> blocks, std::span<float> values) {
  ASSERT(blocks.size() % bytes_per_block(dtype) == 0 &&
             values.size() == blocks.size() / bytes_per_block(dtype) * elements_per_block(dtype),
         "{} bytes of {} for {} values", blocks.size(), name_of(dtype), values.size());
  switch (dtype) {
    case DType::q8_0:
      return each_block<q8_0>(dtype, blocks, values);
    case DType::q4_0:
      return each_block<q4_0>(dtype, blocks, values);
    case DType::q4_1:
      return each_block<q4_1>(dtype, blocks, values);
    case DType::q5_0:
      return each_block<q5_0>(dtype, blocks, values);
    case DType::q5_1:
      return each_block<q5_1>(dtype, blocks, values);
    case DType::q2_k:
      return each_block<q2_k>(dtype, blocks, values);
    case DType::q3_k:
      return each_block<q3_k>(dtype, blocks, values);
    case DType::q4_k:
      return each_block<q4_k>(dtype, blocks, values);
    case DType::q5_k:
      return each_block<q5_k>(dtype, blocks, values);
    case DType::q6_k:
      return each_block<q6_k>(dtype, blocks, values);
    case DType::iq4_nl:
      return each_block<iq4_nl>(dtype, blocks, values);
    case DType::iq4_xs:
      return each_block<iq4_xs>(dtype, blocks, values);
    case DType::mxfp4:
      return each_block<mxfp4>(dtype, blocks, values);
    default:
      throw_internal_error(__FILE__, __LINE__, fmt::format("{} has no blocks", name_of(dtype)));
  }
}

}  // namespace gainlens::formats
