#include "core/plain_text.h"

#include <gtest/gtest.h>

namespace gainlens {
namespace plain_text_test {

TEST(PlainText, ANumberIsTheWholeTextAndFinite) {
  EXPECT_EQ(finite_number("-2e1"), -20.0);
  EXPECT_EQ(finite_number("0"), 0.0);
  for (const char* text : {"", " 1", "1 ", "1x", "x", "+1", "nan", "inf", "-inf", "1e999"})
    EXPECT_FALSE(finite_number(text)) << text;
}

TEST(PlainText, LettersOfAsciiAloneBecomeSmall) {
  EXPECT_EQ(ascii_lower("AbZ@[_0"), "abz@[_0");
  EXPECT_EQ(ascii_lower("\xC3\x84"), "\xC3\x84");
}

}  // namespace plain_text_test
}  // namespace gainlens
