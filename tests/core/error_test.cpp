#include "core/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gainlens {
namespace error_test {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StrEq;
using ::testing::ThrowsMessage;

TEST(Printable, PlainTextAndOtherScriptsStay) {
  EXPECT_EQ(printable("blocks.0.attn"), "blocks.0.attn");
  EXPECT_EQ(printable("Zürich 東京"), "Zürich 東京");
  EXPECT_EQ(printable(""), "");
}

TEST(Printable, ControlCharactersAreEscaped) {
  EXPECT_EQ(printable("a\nb\tc\x7f"), "a\\x0ab\\x09c\\x7f");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\x1b[31mred"), "\\x1b[31mred");
}

TEST(Printable, ControlCharactersBeyondAsciiAreEscaped) {
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m");                                   // U+009B, the one-character form of ESC [
  EXPECT_EQ(printable("a\xe2\x80\xa8z"), "a\\xe2\\x80\\xa8z");  // U+2028, a line break
  EXPECT_EQ(printable("a\xe2\x80\xaez"),
            "a\\xe2\\x80\\xaez");  // U+202E, which would show the following text from right to left
}

TEST(Printable, BytesThatAreNotUtf8AreEscaped) {
  EXPECT_EQ(printable("a\xff"
                      "b"),
            "a\\xffb");
  EXPECT_EQ(printable("a\xc3"), "a\\xc3");  // cut short
}

TEST(Printable, LongTextIsCutBetweenCharacters) {
  EXPECT_EQ(printable("abcdef", 3), "abc... (6 bytes)");
  EXPECT_EQ(printable("abc", 3), "abc");
  EXPECT_EQ(printable("ab\xc3\xbc", 3), "ab... (4 bytes)");  // the letter u with two dots is bytes 2 and 3
}

TEST(Check, ThrowsWithTheFormattedMessage) {
  EXPECT_THAT([] { CHECK(1 > 2, "--lengths: {}; must be at least {}", 0, 1); },
              ThrowsMessage<InvalidArgument>(StrEq("--lengths: 0; must be at least 1")));
  EXPECT_NO_THROW(CHECK(2 > 1, "never shown"));
}

TEST(Check, EvaluatesTheMessageOnlyWhenItFails) {
  int evaluated = 0;
  CHECK(true, "{}", ++evaluated);
  EXPECT_EQ(evaluated, 0);
}

TEST(Assert, IsInternalAndNamesTheLine) {
  EXPECT_THAT([] { ASSERT(false, "row {} lost", 7); }, ThrowsMessage<InternalError>(EndsWith("row 7 lost")));
  EXPECT_THAT([] { ASSERT(false, "row {} lost", 7); }, ThrowsMessage<InternalError>(HasSubstr("error_test.cpp:")));
  EXPECT_NO_THROW(ASSERT(true, "never shown"));
}

TEST(Throw, EachKindIsItsOwnType) {
  EXPECT_THAT([] { throw_run_failed("disk {}", "full"); }, ThrowsMessage<RunFailed>(StrEq("disk full")));
  EXPECT_THAT([] { throw_invalid("no {}", "file"); }, ThrowsMessage<InvalidArgument>(StrEq("no file")));
  EXPECT_THROW(throw NotCompiled("CUDA"), InvalidArgument);  // has the same exit code
}

}  // namespace error_test
}  // namespace gainlens
