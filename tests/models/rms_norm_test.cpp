#include "models/rms_norm.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gainlens::models {
namespace {

TEST(RmsNorm, ByHand) {
  const at::Tensor x = at::tensor({3.0, 4.0, 0.0, 0.0}, at::kDouble);  // mean square 25/4
  EXPECT_TRUE(at::allclose(rms_normalized(x, 0), at::tensor({1.2, 1.6, 0.0, 0.0}, at::kDouble), 1e-15, 1e-15));
  EXPECT_TRUE(at::allclose(rms_norm(x, at::tensor({1.0, 0.5, 7.0, 7.0}, at::kDouble), 0), at::tensor({1.2, 0.8, 0.0, 0.0}, at::kDouble),
                           1e-15, 1e-15));
}

TEST(RmsNorm, EpsilonIsInsideTheRoot) {
  EXPECT_DOUBLE_EQ(rms_normalized(at::tensor({1.0}, at::kDouble), 3)[0].item<double>(), 0.5);  // 1 / sqrt(1 + 3)
}

TEST(RmsNorm, Float64IsNotRoundedToFloat32) {
  const double x = 1 + 1e-12;  // float32 would see 1
  const at::Tensor normalized = rms_normalized(at::tensor({x, 1.0}, at::kDouble), 0);
  EXPECT_NEAR((normalized[0] - normalized[1]).item<double>(), 1e-12, 1e-15);
}

TEST(RmsNorm, HalfTypesAreSquaredInFloat32) {
  const at::Tensor x = at::full({4}, 1000.0, at::kHalf);  // 1000^2 is infinite in float16
  const at::Tensor normalized = rms_normalized(x, 0);
  EXPECT_EQ(normalized.scalar_type(), at::kHalf);
  EXPECT_TRUE(at::equal(normalized, at::ones({4}, at::kHalf)));
}

}  // namespace
}  // namespace gainlens::models
