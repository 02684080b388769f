#include "formats/dequantise.h"

#include "formats/half.h"
#include "formats/safetensors_bytes.h"
#include "formats/tensor_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace gainlens::formats {
namespace dequantise_test {

constexpr std::array block_types{DType::q8_0,   DType::q4_0,   DType::q4_1, DType::q5_0, DType::q5_1,
                                 DType::q2_k,   DType::q3_k,   DType::q4_k, DType::q5_k, DType::q6_k,
                                 DType::iq4_nl, DType::iq4_xs, DType::mxfp4};

std::vector<float> dequantised(DType dtype, std::span<const std::byte> blocks) {
  std::vector<float> values(blocks.size() / bytes_per_block(dtype) * elements_per_block(dtype));
  dequantise(dtype, blocks, values);
  return values;
}

std::vector<float> floats_of(const TensorEntry& entry) {
  std::vector<float> values(entry.bytes.size() / sizeof(float));
  std::memcpy(values.data(), entry.bytes.data(), entry.bytes.size());
  return values;
}

/// The value of a half, computed from the definition of the format.
double half_by_definition(unsigned half) {
  const double sign = half >> 15 == 0 ? 1 : -1;
  const int exponent = static_cast<int>(half >> 10 & 31);
  const unsigned fraction = half & 1023;
  if (exponent == 31)
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

TEST(HalfToFloat, EveryHalf) {
  for (unsigned half = 0; half < 65'536; ++half) {
    const double expected = half_by_definition(half);
    const float found = half_to_float(static_cast<std::uint16_t>(half));
    ASSERT_EQ(std::isnan(found), std::isnan(expected)) << half;
    if (std::isnan(expected)) continue;
    ASSERT_EQ(found, expected) << half;
    ASSERT_EQ(std::signbit(found), std::signbit(expected)) << half;
  }
}

class Dequantise : public ::testing::TestWithParam<DType> {};

TEST_P(Dequantise, IsThePackagesBitForBit) {
  const auto golden =
      TensorFile::open(std::filesystem::path(GAINLENS_SOURCE_DIR) / "tests/formats/golden/blocks.safetensors");
  const std::string name(name_of(GetParam()));
  const TensorEntry& blocks = golden.at(name + ".blocks");
  ASSERT_EQ(blocks.shape.at(1), static_cast<std::int64_t>(bytes_per_block(GetParam())));
  const std::vector<float> expected = floats_of(golden.at(name + ".values"));
  const std::vector<float> found = dequantised(GetParam(), blocks.bytes);
  ASSERT_EQ(found.size(), expected.size());
  ASSERT_GT(found.size(), 12u * 32);
  for (std::size_t i = 0; i < found.size(); ++i) {
    // The format only defines that the value is NaN. The bits of a NaN depend on the operand it came from, and this
    // differs between processors.
    if (std::isnan(expected[i])) {
      ASSERT_TRUE(std::isnan(found[i])) << i;
    } else {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(found[i]), std::bit_cast<std::uint32_t>(expected[i]))
          << "value " << i % elements_per_block(GetParam()) << " of block " << i / elements_per_block(GetParam())
          << ": " << found[i] << " for " << expected[i];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, Dequantise, ::testing::ValuesIn(block_types),
                         [](const auto& param_info) { return std::string(name_of(param_info.param)); });

/// Blocks of one repeated byte with a scale of 1 (a half) in front. Their values in each format can be computed by
/// hand.
std::vector<std::byte> block_of(DType dtype, int byte) {
  std::vector<std::byte> block(bytes_per_block(dtype), static_cast<std::byte>(byte));
  block[0] = std::byte{0x00};
  block[1] = std::byte{0x3c};
  return block;
}

TEST(DequantiseBlocks, ByHand) {
  const auto q8_0 = dequantised(DType::q8_0, block_of(DType::q8_0, 0xfe));
  EXPECT_EQ(q8_0, std::vector<float>(32, -2.0f));
  const auto q4_0 = dequantised(DType::q4_0, block_of(DType::q4_0, 0x1f));  // low bits first: 15 - 8, then 1 - 8
  EXPECT_EQ(q4_0.front(), 7.0f);
  EXPECT_EQ(q4_0.back(), -7.0f);
  const auto iq4_nl = dequantised(DType::iq4_nl, block_of(DType::iq4_nl, 0x0f));  // levels 15, then 0
  EXPECT_EQ(iq4_nl.front(), 113.0f);
  EXPECT_EQ(iq4_nl.back(), -127.0f);
  auto xs = block_of(DType::iq4_xs, 0x98);  // levels 8 and 9 are 1 and 13
  xs[2] = std::byte{0x0e};                  // upper bits of scales: group 0 has 2, group 1 has 3
  xs[4] = std::byte{0x21};                  // lower bits: group 0 has 1, group 1 has 2
  const auto iq4_xs = dequantised(DType::iq4_xs, xs);
  EXPECT_EQ(iq4_xs[0], 1.0f);     // (1 + 32 - 32) * 1
  EXPECT_EQ(iq4_xs[31], 13.0f);   // the upper half of group 0
  EXPECT_EQ(iq4_xs[32], 18.0f);   // (2 + 48 - 32) * 1
  EXPECT_EQ(iq4_xs[63], 234.0f);  // 18 * 13
  auto block = block_of(DType::mxfp4, 0x7f);
  block[0] = std::byte{127};  // 2^0
  block[1] = std::byte{0x7f};
  const auto mxfp4 = dequantised(DType::mxfp4, block);
  EXPECT_EQ(mxfp4.front(), -6.0f);
  EXPECT_EQ(mxfp4.back(), 6.0f);
}

TEST(DequantiseBlocks, ManyBlocksAreEachOnItsOwn) {
  for (const DType dtype : block_types) {
    std::vector<std::byte> first = block_of(dtype, 0x11), second = block_of(dtype, 0x23), both = first;
    both.insert(both.end(), second.begin(), second.end());
    std::vector<float> expected = dequantised(dtype, first);
    const std::vector<float> rest = dequantised(dtype, second);
    expected.insert(expected.end(), rest.begin(), rest.end());
    EXPECT_EQ(dequantised(dtype, both), expected) << name_of(dtype);
  }
}

TEST(DequantiseBlocks, NothingIsNothing) {
  EXPECT_TRUE(dequantised(DType::q4_k, {}).empty());
}

TEST(DequantiseBlocks, SizesThatDoNotFitAreOurMistake) {
  std::array<std::byte, 36> bytes{};
  std::array<float, 64> values{};
  EXPECT_THROW(dequantise(DType::q8_0, bytes, values), InternalError);                       // 36 is not 34 k
  EXPECT_THROW(dequantise(DType::q8_0, std::span(bytes).first(34), values), InternalError);  // 64 values for one block
  EXPECT_THROW(dequantise(DType::f32, bytes, std::span(values).first(9)), InternalError);    // no blocks
}

TEST(IsQuantised, FromQ8_0On) {
  EXPECT_FALSE(is_quantised(DType::f32));
  EXPECT_FALSE(is_quantised(DType::boolean));
  for (const DType dtype : block_types) EXPECT_TRUE(is_quantised(dtype));
}

}  // namespace dequantise_test
}  // namespace gainlens::formats
