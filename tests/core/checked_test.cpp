#include "core/checked.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

namespace gainlens {
namespace checked_test {

using ::testing::StrEq;
using ::testing::ThrowsMessage;

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

TEST(CheckedAdd, ExactUpToTheLimit) {
  EXPECT_EQ(checked_add<std::int64_t>(largest - 1, 1, "offset"), largest);
  EXPECT_EQ(checked_add<std::uint8_t>(200, 55, "byte"), 255);
  EXPECT_THAT([] { checked_add<std::int64_t>(largest, 1, "offset"); },
              ThrowsMessage<InvalidArgument>(StrEq("offset: 9223372036854775807 + 1 is too large")));
  EXPECT_THROW(checked_add<std::uint8_t>(200, 56, "byte"), InvalidArgument);
}

TEST(CheckedMul, ExactUpToTheLimit) {
  EXPECT_EQ(checked_mul<std::int64_t>(3037000499, 3037000499, "elements"),
            9223372030926249001);  // the largest square below 2^63
  EXPECT_THAT([] { checked_mul<std::int64_t>(3037000500, 3037000500, "elements"); },
              ThrowsMessage<InvalidArgument>(StrEq("elements: 3037000500 x 3037000500 is too large")));
  EXPECT_THROW(checked_mul<std::int64_t>(std::numeric_limits<std::int64_t>::min(), -1, "elements"), InvalidArgument);
}

TEST(CheckedCast, KeepsValuesAndRefusesTheRest) {
  EXPECT_EQ((checked_cast<std::uint8_t>(std::int64_t{255}, "byte")), 255);
  EXPECT_EQ((checked_cast<std::int64_t>(std::uint64_t{1} << 62, "size")), std::int64_t{1} << 62);
  EXPECT_THAT([] { checked_cast<std::uint8_t>(256, "byte"); },
              ThrowsMessage<InvalidArgument>(StrEq("byte: 256 is out of range")));
  EXPECT_THROW(checked_cast<std::uint64_t>(-1, "size"), InvalidArgument);
  EXPECT_THROW((checked_cast<std::int64_t>(std::numeric_limits<std::uint64_t>::max(), "size")), InvalidArgument);
}

TEST(CheckedElements, ProductOfSizes) {
  EXPECT_EQ(checked_elements(std::array<std::int64_t, 3>{2, 3, 4}, "w"), 24);
  EXPECT_EQ(checked_elements(std::vector<std::int64_t>{}, "w"), 1);  // a scalar
  EXPECT_EQ(checked_elements(std::array<std::int64_t, 2>{0, 5}, "w"), 0);
}

TEST(CheckedElements, NegativeAndTooLargeAreRefused) {
  EXPECT_THAT(([] {
                checked_elements(std::array<std::int64_t, 2>{2, -3}, "w");
              }),
              ThrowsMessage<InvalidArgument>(StrEq("w: negative size -3 in its shape")));
  EXPECT_THROW(checked_elements(std::array<std::int64_t, 3>{1 << 30, 1 << 30, 8}, "w"), InvalidArgument);  // 2^63
}

}  // namespace checked_test
}  // namespace gainlens
