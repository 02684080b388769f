#include "runfile/text_layout.h"

#include "core/error.h"
#include "runfile/made_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gainlens::runfile {
namespace text_layout_test {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(TextLayout, ConsecutiveLengthsShareTheHeadOfTheText) {
  const TextLayout layout{.lengths = {4, 8}, .samples = 3};
  EXPECT_EQ(text_span(layout, 8, 0), (TextSpan{0, 8}));
  EXPECT_EQ(text_span(layout, 4, 0), (TextSpan{0, 4}));  // chunk 0 of 8 tokens holds chunks 0 and 1 of 4 tokens
  EXPECT_EQ(text_span(layout, 4, 1), (TextSpan{4, 8}));
  EXPECT_EQ(text_span(layout, 4, 2), (TextSpan{8, 12}));
  EXPECT_EQ(tokens_needed(layout, 8), 24);
}

TEST(TextLayout, BosMakesTheStrideOneLess) {
  const TextLayout layout{.lengths = {4, 8}, .samples = 3, .bos = true};
  EXPECT_EQ(text_span(layout, 4, 2), (TextSpan{6, 9}));
  EXPECT_EQ(tokens_needed(layout, 4), 9);
}

TEST(TextLayout, NestedChunksBeginWhereTheLongestDo) {
  const TextLayout layout{.lengths = {4, 8}, .samples = 3, .nested = true, .bos = true};
  EXPECT_EQ(text_span(layout, 8, 2), (TextSpan{14, 21}));
  EXPECT_EQ(text_span(layout, 4, 2), (TextSpan{14, 17}));
  EXPECT_EQ(tokens_needed(layout, 4), 17);
}

TEST(TextLayout, SpreadChunksLieInTheMiddleOfTheirParts) {
  // 100 tokens in 2 parts with middles 25 and 75
  const TextLayout layout{.lengths = {4, 8}, .samples = 2, .spread = 100};
  EXPECT_EQ(text_span(layout, 8, 0), (TextSpan{21, 29}));
  EXPECT_EQ(text_span(layout, 8, 1), (TextSpan{71, 79}));
  EXPECT_EQ(text_span(layout, 4, 1), (TextSpan{73, 77}));
  TextLayout nested = layout;
  nested.nested = true;
  EXPECT_EQ(text_span(nested, 4, 1), (TextSpan{71, 75}));
}

TEST(TextLayout, SpreadChunksNeverOverlapNorLeaveTheText) {
  for (const bool bos : {false, true}) {
    for (std::int64_t samples = 1; samples <= 9; ++samples) {
      for (std::int64_t length = 5; length <= 9; ++length) {
        for (std::int64_t tokens = samples * (length - bos); tokens < 100;
             ++tokens) {  // from the smallest number that is enough
          const TextLayout layout{.lengths = {4, length}, .samples = samples, .spread = tokens, .bos = bos};
          ASSERT_LE(tokens_needed(layout, length), tokens);
          std::int64_t end = 0;
          for (std::int64_t chunk = 0; chunk < samples; ++chunk) {
            const TextSpan whole = text_span(layout, length, chunk), inner = text_span(layout, 4, chunk);
            ASSERT_GE(whole.begin, end);
            ASSERT_EQ(whole.size(), length - bos);
            ASSERT_TRUE(whole.begin <= inner.begin && inner.end <= whole.end)
                << "a shorter chunk lies within the longer one";
            end = whole.end;
          }
          ASSERT_LE(end, tokens);
        }
      }
    }
  }
}

TEST(TextLayout, NumbersBeyond64BitsAreRefused) {
  const auto needed = [](const TextLayout& layout) { return tokens_needed(layout, layout.lengths.back()); };
  EXPECT_THAT([&] { needed({.lengths = {INT64_MAX}, .samples = 3}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("is too large")));
  EXPECT_THAT([&] { needed({.lengths = {4}, .samples = 3, .spread = INT64_MAX}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("is too large")));
}

TEST(TextLayout, FollowsFromTheRequest) {
  Request request = gainlens::testing::made_request();
  request.spread = 500;
  const TextLayout layout = layout_of(request);
  EXPECT_EQ(layout.lengths, request.lengths);
  EXPECT_EQ(layout.samples, 2);
  EXPECT_EQ(layout.spread, 500);
  EXPECT_TRUE(layout.bos);
}

}  // namespace text_layout_test
}  // namespace gainlens::runfile
