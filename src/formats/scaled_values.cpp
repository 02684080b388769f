#include "formats/scaled_values.h"

#include "core/check.h"
#include "core/checked.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

namespace gainlens::formats {
namespace {

constexpr std::int64_t group_values = 32, group_bytes = 16;

/// The 256 values of F8_E4M3: sign, 4 bits of exponent with bias 7, 3 bits of fraction; no infinity, and NaN where all
/// bits but the sign are set. Source: OCP 8-bit Floating Point Specification, "E4M3".
std::array<float, 256> e4m3_values() {
  std::array<float, 256> values{};
  for (int code = 0; code < 256; ++code) {
    const int exponent = code >> 3 & 15, fraction = code & 7;
    const int bits = exponent == 0 ? fraction : 8 + fraction;  // in units of 2^(exponent - 10)
    const float size = std::ldexp(static_cast<float>(bits), (exponent == 0 ? 1 : exponent) - 10);
    const bool is_nan = exponent == 15 && fraction == 7;
    values[static_cast<std::size_t>(code)] = is_nan              ? std::numeric_limits<float>::quiet_NaN()
                                             : (code & 128) != 0 ? -size
                                                                 : size;
  }
  return values;
}

/// The values of E2M1: sign, 2 bits of exponent with bias 1, 1 bit of fraction.
constexpr std::array<float, 16> e2m1_values = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6, -0.0F, -0.5F, -1, -1.5F, -2, -3, -4, -6};

/// 2^(code - 127), exactly; NaN for 255.
float e8m0_value(std::uint8_t code) {
  if (code == 255) return std::numeric_limits<float>::quiet_NaN();
  return std::ldexp(1.0F, static_cast<int>(code) - 127);
}

std::uint8_t byte_at(const TensorEntry& entry, std::int64_t index) {
  return std::to_integer<std::uint8_t>(entry.bytes[static_cast<std::size_t>(index)]);
}

/// Element of a tensor in F32 or BF16.
float scale_at(const TensorEntry& entry, std::int64_t index) {
  const std::byte* at = entry.bytes.data() + static_cast<std::size_t>(index) * bytes_per_element(entry.dtype);
  if (entry.dtype == DType::f32) {
    float value = 0;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return std::bit_cast<float>(std::uint32_t{bits} << 16);  // BF16
}

void read_fp8(const ScaledTensor& tensor, std::int64_t begin, std::span<float> values) {
  static const std::array<float, 256> numbers = e4m3_values();
  const std::int64_t columns = tensor.shape[1], blocks = tensor.scales.shape[1];
  for (std::size_t i = 0; i < values.size();) {
    const std::int64_t element = begin + static_cast<std::int64_t>(i), row = element / columns,
                       column = element % columns;
    const float scale = scale_at(tensor.scales, row / fp8_block * blocks + column / fp8_block);
    // Up to the end of the block, of the row or of what is asked for.
    const std::int64_t block_end = std::min((column / fp8_block + 1) * fp8_block, columns);
    const std::size_t end = std::min(values.size(), i + static_cast<std::size_t>(block_end - column));
    for (std::int64_t at = element; i < end; ++i, ++at) values[i] = numbers[byte_at(tensor.numbers, at)] * scale;
  }
}

void read_mxfp4(const ScaledTensor& tensor, std::int64_t begin, std::span<float> values) {
  ASSERT(begin % group_values == 0 && values.size() % static_cast<std::size_t>(group_values) == 0,
         "{} values from {} are no whole groups", values.size(), begin);
  std::int64_t group = begin / group_values;
  for (std::size_t i = 0; i < values.size(); ++group) {
    const float scale = e8m0_value(byte_at(tensor.scales, group));
    for (std::int64_t byte = 0; byte < group_bytes; ++byte) {
      const std::uint8_t two = byte_at(tensor.numbers, group * group_bytes + byte);
      values[i++] = e2m1_values[two & 15U] * scale;
      values[i++] = e2m1_values[two >> 4U] * scale;
    }
  }
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace

ScaledTensor scaled_tensor(ScaledForm form, const TensorEntry& numbers, const TensorEntry& scales,
                           std::string_view where) {
  ScaledTensor tensor{form, numbers, scales, {}};
  const auto check = [&](bool fits, std::string_view expected) {
    CHECK(fits, "{}: '{}' is {} {} and '{}' is {} {}; {}", where, printable(numbers.name, 100), name_of(numbers.dtype),
          shape_text(numbers.shape), printable(scales.name, 100), name_of(scales.dtype), shape_text(scales.shape),
          expected);
  };
  if (form == ScaledForm::fp8_blocks) {
    constexpr std::string_view expected =
        "must be F8_E4M3 with two dimensions, and F32 or BF16 with one scale for each block of 128 x 128";
    const bool known = numbers.dtype == DType::f8_e4m3 && (scales.dtype == DType::f32 || scales.dtype == DType::bf16);
    check(known && numbers.shape.size() == 2 && scales.shape.size() == 2, expected);
    const auto blocks = [](std::int64_t size) { return size / fp8_block + (size % fp8_block != 0 ? 1 : 0); };
    check(scales.shape[0] == blocks(numbers.shape[0]) && scales.shape[1] == blocks(numbers.shape[1]), expected);
    tensor.shape = numbers.shape;
    return tensor;
  }
  constexpr std::string_view expected = "must be U8 [.., groups, 16] and U8 [.., groups]";
  check(numbers.dtype == DType::u8 && scales.dtype == DType::u8 && numbers.shape.size() >= 2 &&
            numbers.shape.back() == group_bytes,
        expected);
  tensor.shape.assign(numbers.shape.begin(), numbers.shape.end() - 1);
  check(tensor.shape == scales.shape, expected);
  tensor.shape.back() = checked_mul(tensor.shape.back(), group_values, numbers.name);
  return tensor;
}

void read_scaled(const ScaledTensor& tensor, std::int64_t begin, std::span<float> values) {
  switch (tensor.form) {
    case ScaledForm::fp8_blocks:
      return read_fp8(tensor, begin, values);
    case ScaledForm::mxfp4:
      return read_mxfp4(tensor, begin, values);
  }
}

}  // namespace gainlens::formats
