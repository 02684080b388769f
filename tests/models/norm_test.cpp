#include "models/decoder/norm.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gainlens::models {
namespace norm_test {

TEST(RmsNorm, ByHand) {
  const at::Tensor x = at::tensor({3.0, 4.0, 0.0, 0.0}, at::kDouble);  // mean square 25/4
  EXPECT_TRUE(at::allclose(rms_normalised(x, 0), at::tensor({1.2, 1.6, 0.0, 0.0}, at::kDouble), 1e-15, 1e-15));
  EXPECT_TRUE(at::allclose(scaled(rms_normalised(x, 0), at::tensor({1.0, 0.5, 7.0, 7.0}, at::kDouble)),
                           at::tensor({1.2, 0.8, 0.0, 0.0}, at::kDouble), 1e-15, 1e-15));
}

TEST(RmsNorm, EpsilonIsInsideTheRoot) {
  EXPECT_DOUBLE_EQ(rms_normalised(at::tensor({1.0}, at::kDouble), 3)[0].item<double>(), 0.5);  // 1 / sqrt(1 + 3)
}

TEST(RmsNorm, Float64IsNotRoundedToFloat32) {
  const double x = 1 + 1e-12;  // in float32 this is 1
  const at::Tensor normalized = rms_normalised(at::tensor({x, 1.0}, at::kDouble), 0);
  EXPECT_NEAR((normalized[0] - normalized[1]).item<double>(), 1e-12, 1e-15);
}

TEST(RmsNorm, HalfTypesAreSquaredInFloat32) {
  const at::Tensor x = at::full({4}, 1000.0, at::kHalf);  // 1000^2 overflows in float16
  const at::Tensor normalized = rms_normalised(x, 0);
  EXPECT_EQ(normalized.scalar_type(), at::kFloat);
  EXPECT_TRUE(at::allclose(normalized, at::ones({4}, at::kFloat)));
}

TEST(LayerNorm, ByHand) {
  const at::Tensor x = at::tensor({1.0, 5.0}, at::kDouble);  // mean 3, variance 4
  EXPECT_TRUE(at::allclose(layer_normalised(x, 0), at::tensor({-1.0, 1.0}, at::kDouble), 1e-15, 1e-15));
  EXPECT_TRUE(at::allclose(layer_normalised(x, 12), at::tensor({-0.5, 0.5}, at::kDouble), 1e-15, 1e-15));
  EXPECT_TRUE(at::equal(normalised(x, Norm::layer, 1e-5), layer_normalised(x, 1e-5)));
  EXPECT_TRUE(at::equal(normalised(x, Norm::rms, 1e-5), rms_normalised(x, 1e-5)));
}

TEST(LayerNorm, ALargeMeanDoesNotCancel) {
  const at::Tensor x = at::tensor({1e4f + 1, 1e4f + 3}, at::kFloat);
  EXPECT_TRUE(at::allclose(layer_normalised(x, 0), at::tensor({-1.f, 1.f}), 1e-6, 1e-6));
}

TEST(ScaledNorm, OffsetAndBiasByHand) {
  const at::Tensor x = at::tensor({2.0, 3.0}, at::kDouble), weight = at::tensor({0.5, -1.0}, at::kDouble);
  EXPECT_TRUE(at::equal(scaled(x, weight), at::tensor({1.0, -3.0}, at::kDouble)));
  EXPECT_TRUE(at::equal(scaled(x, weight, 1), at::tensor({3.0, 0.0}, at::kDouble)));
  EXPECT_TRUE(
      at::equal(scaled(x, weight, 1, at::tensor({10.0, 20.0}, at::kDouble)), at::tensor({13.0, 20.0}, at::kDouble)));
}

TEST(ScaledNorm, AnOffsetIsAddedInFloat32) {
  const at::Tensor weight = at::full({1}, 0.00390625, at::kBFloat16);  // bfloat16 cannot hold 1 + 1/256
  const at::Tensor found = scaled(at::full({1}, 128.0, at::kFloat), weight, 1);
  EXPECT_EQ(found.scalar_type(), at::kBFloat16);
  EXPECT_EQ(found.item<float>(), 128);  // 128.5 rounds to even
  EXPECT_EQ(scaled(at::full({1}, 384.0, at::kFloat), weight, 1).item<float>(),
            386);  // 385.5; 384 if 1 + w had been rounded first
}

}  // namespace norm_test
}  // namespace gainlens::models
