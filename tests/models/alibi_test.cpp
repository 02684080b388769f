#include "models/decoder/alibi.h"

#include "core/error.h"
#include "models/decoder/attention_ops.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gainlens::models {
namespace alibi_test {

constexpr Alibi rounding{.factor = 0.5, .bfloat16 = true};

TEST(Alibi, PowersOfTwoByHand) {
  const at::Tensor bias = alibi_distance_bias({}, 4, 3);  // slopes 2^-2, 2^-4, 2^-6, 2^-8
  EXPECT_TRUE(at::equal(bias.select(1, 0), at::zeros({4}, at::kDouble)));
  EXPECT_TRUE(at::equal(bias.select(1, 2), at::tensor({-0.5, -0.125, -0.03125, -0.0078125}, at::kDouble)));
}

TEST(Alibi, HeadsBeyondAPowerOfTwoTakeTheOddPowersOfTheNext) {
  const at::Tensor slopes = -alibi_distance_bias({}, 6, 2).select(1, 1);
  EXPECT_TRUE(at::equal(slopes, at::tensor({0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125}, at::kDouble)));
}

TEST(Alibi, FactorAndRounding) {
  EXPECT_DOUBLE_EQ(alibi_distance_bias({.factor = 0.5}, 1, 300).select(1, 299).item<double>(), -0.5 * 299 / 256);
  EXPECT_DOUBLE_EQ(alibi_key_bias(rounding, 1, 300).select(1, 299).item<double>(),
                   0.5 * 300 / 256);  // bfloat16 cannot hold 299; the nearest number is 300
}

TEST(Alibi, RoundingBelongsToPositionsAlone) {
  EXPECT_THROW(alibi_distance_bias(rounding, 1, 3), InternalError);
  EXPECT_THROW(alibi_key_bias({}, 1, 3), InternalError);
}

/// n_eff of the last of 32k queries, where all keys are equal and only a bias gives them different weights.
double last_n_eff(kernels::AttentionOptions options) {
  const std::int64_t positions = 32768;
  const at::Tensor zeros = at::zeros({1, 1, positions, 1});
  options.window = 512;  // the keys outside the window have weights of at most e^-362
  double n_eff = 0;
  StatisticsAttention attention([&](std::int64_t, kernels::QueryStatistics&& statistics) {
    n_eff = statistics.n_eff[0][positions - 1].item<double>();
  });
  attention.run(0, {zeros, zeros, zeros}, options);
  return n_eff;
}

TEST(Alibi, DigitsOfNeighboursSurviveALongText) {
  // The first of 16 heads has slope 2^-1/2. Its weights fall geometrically with the distance: p_d = (1 - r) r^d with r
  // = exp(-2^-1/2). Therefore 1 / sum p^2 = (1 + r) / (1 - r).
  const double slope = std::sqrt(0.5), r = std::exp(-slope), expected = (1 + r) / (1 - r);
  kernels::AttentionOptions by_distance, by_position;
  by_distance.distance_bias = alibi_distance_bias({}, 16, 32768).slice(0, 0, 1);
  by_position.key_bias = at::arange(32768, at::kDouble) * slope;  // the same scores plus one number for all keys
  EXPECT_NEAR(last_n_eff(by_distance), expected, 3e-6 * expected);
  EXPECT_GT(std::abs(last_n_eff(by_position) - expected), 5e-5 * expected);  // the reason for a bias by distance
}

}  // namespace alibi_test
}  // namespace gainlens::models
