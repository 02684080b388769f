#include "sweep/moments.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace gainlens::sweep {
namespace moments_test {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST(Windows, BeginAtTheCeilings) {
  EXPECT_EQ(last_quarter_begin(8), 6);
  EXPECT_EQ(last_quarter_begin(9), 7);   // ceil(6.75)
  EXPECT_EQ(last_quarter_begin(10), 8);  // ceil(7.5)
  EXPECT_EQ(last_quarter_begin(1000), 750);
  EXPECT_EQ(second_half_begin(8), 4);
  EXPECT_EQ(second_half_begin(9), 5);  // ceil(4.5)
}

TEST(Windows, ShortestLengthIsTheFirstWhoseLastQuarterHoldsAQuery) {
  EXPECT_EQ(last_quarter_begin(shortest_length - 1), shortest_length - 1);
  EXPECT_LT(last_quarter_begin(shortest_length), shortest_length);
}

TEST(Moments, ByHand) {
  const auto found = moments(std::vector<double>{1, 3});
  EXPECT_DOUBLE_EQ(found.mean, 2);
  EXPECT_DOUBLE_EQ(found.variance, 1);  // population: ((1-2)^2 + (3-2)^2) / 2
  EXPECT_EQ(found.count, 2);
}

TEST(Moments, NaNIsLeftOut) {
  const auto found = moments(std::vector<double>{nan, 4, nan, 8});
  EXPECT_DOUBLE_EQ(found.mean, 6);
  EXPECT_DOUBLE_EQ(found.variance, 4);
  EXPECT_EQ(found.count, 2);
}

TEST(Moments, NothingLeftIsNaN) {
  const auto found = moments(std::vector<double>{nan});
  EXPECT_TRUE(std::isnan(found.mean));
  EXPECT_TRUE(std::isnan(found.variance));
  EXPECT_EQ(found.count, 0);
}

TEST(Moments, LargeCommonMeanDoesNotCancel) {
  EXPECT_DOUBLE_EQ(moments(std::vector<double>{1e9 + 1, 1e9 + 3}).variance, 1);
}

TEST(BinMeans, TwoPositionsABin) {
  std::vector<double> values(2 * runfile::bins);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  const auto means = bin_means(values);
  EXPECT_DOUBLE_EQ(means[0], 0.5);
  EXPECT_DOUBLE_EQ(means[63], 126.5);
}

TEST(BinMeans, FewerPositionsThanBinsLeaveNaN) {
  const auto means = bin_means(std::vector<double>{10, 20});  // position 1 of 2 lies in bin floor(64 / 2)
  EXPECT_DOUBLE_EQ(means[0], 10);
  EXPECT_TRUE(std::isnan(means[1]));
  EXPECT_DOUBLE_EQ(means[32], 20);
}

}  // namespace moments_test
}  // namespace gainlens::sweep
