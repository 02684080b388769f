#include "core/number_ranges.h"

#include <gmock/gmock.h>

namespace gainlens {
namespace number_ranges_test {

TEST(NumberRanges, DrawsThreeOrMoreTogether) {
  EXPECT_EQ(number_ranges({0, 1, 2, 3, 7, 9, 10}), "0-3, 7, 9, 10");
  EXPECT_EQ(number_ranges({4}), "4");
  EXPECT_EQ(number_ranges({}), "");
}

TEST(NumberRanges, TakesWordsForTheDash) {
  EXPECT_EQ(number_ranges({8, 16, 17, 18}, " to "), "8, 16 to 18");
}

TEST(NumberRanges, EitherOfTheDistinctNumbers) {
  EXPECT_EQ(either_number({4, 4}), "4");
  EXPECT_EQ(either_number({4, 2, 4}), "2 or 4");
  EXPECT_EQ(either_number({8, 2, 4}), "2, 4 or 8");
}

}  // namespace number_ranges_test
}  // namespace gainlens
