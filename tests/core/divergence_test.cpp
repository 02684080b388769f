#include "core/divergence.h"

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

namespace gainlens {
namespace divergence_test {

TEST(Divergence, IsALastLossAboveTheFirstOrAboveGuessing) {
  const auto said = [](const std::vector<double>& losses) { return divergence(losses, 12); };  // ln 12 = 2.485
  EXPECT_EQ(said({}), "");
  EXPECT_EQ(said({2.5, 2.1, 1.9}), "");
  EXPECT_EQ(said({2.49}), "");
  EXPECT_EQ(said({1.5, 1.4, 1.6}), "");
  EXPECT_EQ(said({1.5, 1.4, 1.7}), "its last training loss is 1.7, above the 1.5 of the first epoch");
  EXPECT_EQ(said({90, 80, 70}), "its last training loss is 70, above the 2.485 of guessing evenly among 12 items");
  EXPECT_EQ(said({2.5, NAN}), "its last training loss is nan");
  EXPECT_EQ(divergence(std::vector<double>{90, 98}, 0), "") << "how many choices there are is not known";
  EXPECT_EQ(divergence(std::vector<double>{3, 4}, 0), "its last training loss is 4, above the 3 of the first epoch");
  EXPECT_EQ(divergence(std::vector<double>{3, 4}, 1000, {"up to the first evaluation", "token"}),
            "its last training loss is 4, above the 3 up to the first evaluation");
}

}  // namespace divergence_test
}  // namespace gainlens
