#include "core/quantity.h"

#include "core/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace gainlens {
namespace quantity_test {

using ::testing::ElementsAre;
using ::testing::StrEq;
using ::testing::ThrowsMessage;

TEST(ParseCount, WholeNumbersAndThousands) {
  EXPECT_EQ(parse_count("1", "--samples"), 1);
  EXPECT_EQ(parse_count("512", "--samples"), 512);
  EXPECT_EQ(parse_count("1k", "--lengths"), 1024);
  EXPECT_EQ(parse_count("10K", "--lengths"), 10240);
}

TEST(ParseCount, WhatIsNoCountIsNamed) {
  for (const char* text : {"", "k", "4kk", "4.5k", "1e3", "+5", " 5", "5 ", "0x10", "99999999999999999999"}) {
    EXPECT_THROW(parse_count(text, "--lengths"), InvalidArgument) << text;
  }
  EXPECT_THAT([] { parse_count("4m", "--lengths"); },
              ThrowsMessage<InvalidArgument>(
                  StrEq("--lengths: '4m' is not a count; write a whole number such as 512, or 4k for 4096")));
}

TEST(ParseCount, ZeroNegativeAndTooLargeAreRefused) {
  EXPECT_THAT([] { parse_count("0", "--samples"); },
              ThrowsMessage<InvalidArgument>(StrEq("--samples: 0; must be at least 1")));
  EXPECT_THAT([] { parse_count("-3k", "--samples"); },
              ThrowsMessage<InvalidArgument>(StrEq("--samples: -3k; must be at least 1")));
  EXPECT_THROW(parse_count("9007199254740992k", "--samples"), InvalidArgument);  // 2^53 x 2^10 = 2^63
}

TEST(ParseCount, TheLeastCountIsTheSameForEveryNumberBelowIt) {
  const LeastCount least{4, "so that the last quarter holds a query"};
  EXPECT_EQ(parse_count("4", "--lengths", least), 4);
  for (const std::string text : {"3", "0", "-64", "-1k"}) {
    EXPECT_THAT([&] { parse_counts("64," + text, "--lengths", least); },
                ThrowsMessage<InvalidArgument>("--lengths: " + text +
                                               "; must be at least 4, so that the last quarter holds a query"));
  }
}

TEST(ParseCounts, SortedWithoutRepeats) {
  EXPECT_THAT(parse_counts("4k,1k,4096,2k", "--lengths"), ElementsAre(1024, 2048, 4096));
}

TEST(ParseCounts, EmptyPartsAreRefused) {
  for (const char* text : {"", ",", "1k,", ",1k", "1k,,2k"})
    EXPECT_THROW(parse_counts(text, "--lengths"), InvalidArgument) << text;
}

TEST(FormatCount, IsTheInverseOfParseCount) {
  EXPECT_EQ(format_count(1024), "1k");
  EXPECT_EQ(format_count(6144), "6k");
  EXPECT_EQ(format_count(1000), "1000");
  EXPECT_EQ(format_count(0), "0");
  for (const std::int64_t count : {1, 512, 1024, 1025, 10240, 1 << 20})
    EXPECT_EQ(parse_count(format_count(count), "count"), count);
}

TEST(FormatBytes, ByHand) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.0 KiB");
  EXPECT_EQ(format_bytes(17 * 1024), "17 KiB");
  EXPECT_EQ(format_bytes(3435973837), "3.2 GiB");  // 3.2 x 2^30
  EXPECT_EQ(format_bytes(std::numeric_limits<std::uint64_t>::max()), "16777216 TiB");
}

TEST(FormatBytes, NeverShows1024OfAUnit) {
  EXPECT_EQ(format_bytes(1024 * 1024 - 1), "1.0 MiB");
  EXPECT_EQ(format_bytes(1023 * 1024), "1023 KiB");
}

TEST(FormatDuration, ByHand) {
  EXPECT_EQ(format_duration(0), "0.0 s");
  EXPECT_EQ(format_duration(4.2), "4.2 s");
  EXPECT_EQ(format_duration(185), "3 min 05 s");
  EXPECT_EQ(format_duration(3720), "1 h 02 min");
}

TEST(FormatDuration, NeverShows60OfAUnit) {
  EXPECT_EQ(format_duration(59.97), "1 min 00 s");
  EXPECT_EQ(format_duration(3599.7), "1 h 00 min");
}

TEST(FormatDuration, WhatIsNoDurationIsAQuestionMark) {
  EXPECT_EQ(format_duration(-1), "?");
  EXPECT_EQ(format_duration(std::numeric_limits<double>::quiet_NaN()), "?");
  EXPECT_EQ(format_duration(std::numeric_limits<double>::infinity()), "?");
  EXPECT_EQ(format_duration(1e300), "?");
}

}  // namespace quantity_test
}  // namespace gainlens
