#include "core/utf8.h"

#include <gtest/gtest.h>

namespace gainlens {
namespace utf8_test {

TEST(FirstInvalidUtf8, NothingInValidText) {
  EXPECT_EQ(first_invalid_utf8(""), std::nullopt);
  EXPECT_EQ(first_invalid_utf8("plain"), std::nullopt);
  EXPECT_EQ(first_invalid_utf8(std::string_view("\0x", 2)), std::nullopt);
  EXPECT_EQ(first_invalid_utf8("ü ▁ 😀"), std::nullopt);
}

TEST(FirstInvalidUtf8, WhereTheFirstFaultBegins) {
  EXPECT_EQ(first_invalid_utf8("ab\xff\xfe"), 2u);
  EXPECT_EQ(first_invalid_utf8("\xc3"), 0u);              // half a character
  EXPECT_EQ(first_invalid_utf8("a\xc0\xaf"), 1u);         // overlong '/'
  EXPECT_EQ(first_invalid_utf8("\xed\xa0\x80"), 0u);      // a surrogate
  EXPECT_EQ(first_invalid_utf8("\xf4\x90\x80\x80"), 0u);  // beyond U+10FFFF
}

}  // namespace utf8_test
}  // namespace gainlens
