#include "core/short_text.h"

#include <gtest/gtest.h>

namespace gainlens {
namespace short_text_test {

TEST(ShortText, IsTheShortestThatGivesTheValueBack) {
  EXPECT_EQ(short_text(0.5), "0.5");
  EXPECT_EQ(short_text(100.0), "100");
  EXPECT_EQ(short_text(0.1), "0.1");
  EXPECT_EQ(short_text(1e-5), "1e-05");
  EXPECT_EQ(short_text(1e20), "1e+20");
  EXPECT_EQ(short_text(50), "50");
  EXPECT_EQ(short_text(true), "true");
  EXPECT_EQ(short_text("reml"), "reml");
}

}  // namespace short_text_test
}  // namespace gainlens
