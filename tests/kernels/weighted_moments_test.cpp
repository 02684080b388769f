#include "kernels/reference/weighted_moments.h"

#include "core/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>

namespace gainlens::kernels {
namespace weighted_moments_test {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(WeightedMoments, TwoEqualWeightsByHand) {
  const auto m = weighted_moments(std::array{0.5, 0.5}, std::array{1.0, 3.0});
  EXPECT_DOUBLE_EQ(m.effective_sample_size, 2.0);
  EXPECT_DOUBLE_EQ(m.mean, 2.0);
  EXPECT_DOUBLE_EQ(m.residual, 1.0);  // ((1-2)^2 + (3-2)^2) / 2
}

TEST(WeightedMoments, UnevenWeightsNeedNotSumToOne) {
  const auto m = weighted_moments(std::array{3.0, 1.0, 0.0}, std::array{0.0, 4.0, 100.0});
  EXPECT_DOUBLE_EQ(m.effective_sample_size, 1.6);  // 4^2 / (9 + 1)
  EXPECT_DOUBLE_EQ(m.mean, 1.0);
  EXPECT_DOUBLE_EQ(m.residual, 3.0);  // (3 * 1 + 1 * 9) / 4
}

TEST(WeightedMoments, EqualValuesHaveExactlyTheirMean) {
  const std::vector<double> weights(513, 0.1), values(513, 0.3);
  const auto m = weighted_moments(weights, values);
  EXPECT_EQ(m.mean, 0.3);
  EXPECT_EQ(m.residual, 0);
}

TEST(WeightedMoments, LargeCommonMeanDoesNotCancel) {
  const auto m = weighted_moments(std::array{0.5, 0.5}, std::array{1e9 + 1, 1e9 + 3});
  EXPECT_DOUBLE_EQ(m.residual, 1.0);
}

TEST(WeightedMoments, NegativeWeightIsNamed) {
  EXPECT_THAT(
      [] {
        weighted_moments(std::array{1.0, -0.5}, std::array{0.0, 0.0});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("weight -0.5 at key 1")));
}

TEST(WeightedMoments, BadInputIsRefused) {
  EXPECT_THROW(weighted_moments(std::array{1.0}, std::array{0.0, 0.0}), InvalidArgument);
  EXPECT_THROW(weighted_moments(std::array{0.0, 0.0}, std::array{0.0, 0.0}), InvalidArgument);
  EXPECT_THROW(weighted_moments(std::array{std::numeric_limits<double>::infinity()}, std::array{0.0}), InvalidArgument);
}

}  // namespace weighted_moments_test
}  // namespace gainlens::kernels
