#include "core/random.h"

#include "core/error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace gainlens {
namespace random_test {

TEST(Random, IsTheSameEverywhere) {
  // The C++ standard fixes the 10,000th number of an engine with the default seed ([rand.predef]). Our generator
  // differs only in the seed.
  std::mt19937_64 engine;
  engine.discard(9999);
  EXPECT_EQ(engine(), 9981545732273789042u);
  Random random(1, 2), same(1, 2), other_stream(1, 3), other_seed(2, 2);
  const std::uint64_t first = random.bits();
  EXPECT_EQ(first, same.bits());
  EXPECT_NE(first, other_stream.bits());
  EXPECT_NE(first, other_seed.bits());
}

TEST(Random, DrawsEveryNumberBelowABoundAboutAsOften) {
  Random random(3);
  std::vector<int> counts(7);
  for (int i = 0; i < 70000; ++i) ++counts[static_cast<std::size_t>(random.below(7))];
  double chi_squared = 0;
  for (const int count : counts) chi_squared += (count - 10000.0) * (count - 10000.0) / 10000;
  EXPECT_LT(chi_squared, 22.5);  // the 99.9% point of chi-squared with 6 degrees of freedom
  EXPECT_EQ(random.below(1), 0u);
  EXPECT_THROW(random.below(0), InternalError);
}

TEST(Random, UniformLiesInTheUnitInterval) {
  Random random(4);
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const double drawn = random.uniform();
    ASSERT_GE(drawn, 0);
    ASSERT_LT(drawn, 1);
    sum += drawn;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.015);
}

TEST(Random, ShufflesIntoEveryOrder) {
  Random random(5);
  std::set<std::vector<int>> seen;
  for (int i = 0; i < 400; ++i) {
    std::vector<int> items = {1, 2, 3, 4};
    random.shuffle(items);
    EXPECT_TRUE(std::is_permutation(items.begin(), items.end(), std::vector<int>{1, 2, 3, 4}.begin()));
    seen.insert(items);
  }
  EXPECT_EQ(seen.size(), 24u);
}

}  // namespace random_test
}  // namespace gainlens
