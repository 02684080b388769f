#include "models/alibi.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace gainlens::models {
namespace {

TEST(Alibi, PowersOfTwoByHand) {
  const at::Tensor bias = alibi_bias({}, 4, 3);  // slopes 2^-2, 2^-4, 2^-6, 2^-8
  EXPECT_TRUE(at::equal(bias.select(1, 0), at::zeros({4}, at::kDouble)));
  EXPECT_TRUE(at::equal(bias.select(1, 2), at::tensor({0.5, 0.125, 0.03125, 0.0078125}, at::kDouble)));
}

TEST(Alibi, HeadsBeyondAPowerOfTwoTakeTheOddPowersOfTheNext) {
  const at::Tensor slopes = alibi_bias({}, 6, 2).select(1, 1);
  EXPECT_TRUE(at::equal(slopes, at::tensor({0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125}, at::kDouble)));
}

TEST(Alibi, FactorAndRounding) {
  const at::Tensor plain = alibi_bias({}, 1, 300).select(1, 299),
                   rounded = alibi_bias({.factor = 0.5, .bfloat16 = true}, 1, 300).select(1, 299);
  EXPECT_DOUBLE_EQ(plain.item<double>(), 299.0 / 256);
  EXPECT_DOUBLE_EQ(rounded.item<double>(), 0.5 * 300 / 256);  // 299 is no bfloat16; 300 is the nearest
}

}  // namespace
}  // namespace gainlens::models
