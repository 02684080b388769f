#include "formats/dtype.h"

#include "core/error.h"
#include "formats/printed_dtype.h"

#include <gtest/gtest.h>

#include <map>

namespace gainlens::formats {
namespace dtype_test {

TEST(DType, NamesAndSizes) {
  EXPECT_EQ(name_of(DType::f64), "F64");
  EXPECT_EQ(name_of(DType::bf16), "BF16");
  EXPECT_EQ(name_of(DType::boolean), "BOOL");
  EXPECT_EQ(bytes_per_element(DType::f64), 8u);
  EXPECT_EQ(bytes_per_element(DType::f32), 4u);
  EXPECT_EQ(bytes_per_element(DType::f16), 2u);
  EXPECT_EQ(bytes_per_element(DType::bf16), 2u);
  EXPECT_EQ(bytes_per_element(DType::i64), 8u);
  EXPECT_EQ(bytes_per_element(DType::i32), 4u);
  EXPECT_EQ(bytes_per_element(DType::i16), 2u);
  EXPECT_EQ(bytes_per_element(DType::i8), 1u);
  EXPECT_EQ(bytes_per_element(DType::u8), 1u);
  EXPECT_EQ(bytes_per_element(DType::boolean), 1u);
}

TEST(DType, BlocksOfSeveralElements) {
  EXPECT_EQ(name_of(DType::q4_k), "Q4_K");
  EXPECT_EQ(name_of(DType::mxfp4), "MXFP4");
  EXPECT_EQ(elements_per_block(DType::f32), 1u);
  EXPECT_EQ(bytes_per_block(DType::f32), 4u);
  const std::map<DType, std::size_t> bytes_of_32{{DType::q8_0, 34}, {DType::q4_0, 18}, {DType::q4_1, 20},
                                                 {DType::q5_0, 22}, {DType::q5_1, 24}, {DType::iq4_nl, 18},
                                                 {DType::mxfp4, 17}};
  const std::map<DType, std::size_t> bytes_of_256{{DType::q2_k, 84},  {DType::q3_k, 110}, {DType::q4_k, 144},
                                                  {DType::q5_k, 176}, {DType::q6_k, 210}, {DType::iq4_xs, 136}};
  for (const auto& [dtype, bytes] : bytes_of_32) {
    EXPECT_EQ(elements_per_block(dtype), 32u);
    EXPECT_EQ(bytes_per_block(dtype), bytes) << name_of(dtype);
  }
  for (const auto& [dtype, bytes] : bytes_of_256) {
    EXPECT_EQ(elements_per_block(dtype), 256u);
    EXPECT_EQ(bytes_per_block(dtype), bytes) << name_of(dtype);
    EXPECT_THROW(bytes_per_element(dtype), InternalError);
    EXPECT_EQ(dtype_named(name_of(dtype)), std::nullopt);  // safetensors has none
  }
}

TEST(DType, NameLeadsBack) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32, DType::i16,
                            DType::i8, DType::u8, DType::boolean}) {
    EXPECT_EQ(dtype_named(name_of(dtype)), dtype);
  }
  EXPECT_EQ(dtype_named("f32"), std::nullopt);
  EXPECT_EQ(dtype_named("F8_E5M2"), std::nullopt);
  EXPECT_EQ(dtype_named(""), std::nullopt);
}

TEST(DType, AllowedOnesInOneLine) {
  EXPECT_EQ(allowed_dtypes(), "F64, F32, F16, BF16, F8_E4M3, I64, I32, I16, I8, U8, BOOL");
}

TEST(DType, NumberOfNoTypeIsOurMistake) {
  EXPECT_THROW(name_of(static_cast<DType>(99)), InternalError);
}

}  // namespace dtype_test
}  // namespace gainlens::formats
