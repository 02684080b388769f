#include "analyses/holm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace gainlens::analyses {
namespace holm_test {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

TEST(Holm, StepsDownByHand) {
  // 4 x 0.005, 3 x 0.01, 2 x 0.03; 1 x 0.04 is raised to the number before it
  EXPECT_THAT(holm(std::vector{0.01, 0.04, 0.03, 0.005}),
              ElementsAre(DoubleEq(0.03), DoubleEq(0.06), DoubleEq(0.06), DoubleEq(0.02)));
}

TEST(Holm, OneTestIsItself) {
  EXPECT_THAT(holm(std::vector{0.02}), ElementsAre(0.02));
  EXPECT_TRUE(holm({}).empty());
}

TEST(Holm, IsNeverAboveOne) {
  EXPECT_THAT(holm(std::vector{0.9, 0.8}), ElementsAre(1.0, 1.0));
}

}  // namespace holm_test
}  // namespace gainlens::analyses
