#include "interventions/text_overlap.h"

#include "support/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace gainlens::interventions {
namespace text_overlap_test {

using ::testing::HasSubstr;

std::vector<std::int32_t> counting(std::int32_t first, std::size_t count) {
  std::vector<std::int32_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

std::string refusal(const std::vector<std::int32_t>& calibration, const std::vector<std::int32_t>& test,
                    std::int64_t first = 0) {
  return gainlens::testing::refusal_of([&] { check_disjoint({counting(9000, 64), calibration}, {test}, first); });
}

TEST(TextOverlap, IsARunOfTokensInCommon) {
  EXPECT_EQ(refusal(counting(0, 64), counting(100, 64)), "accepted");
  EXPECT_EQ(refusal(counting(0, 64), counting(33, 64)), "accepted");  // 31 in common
  EXPECT_THAT(refusal(counting(0, 64), counting(32, 64)),
              HasSubstr("--calibration: its document 1 and document 0 of the test have 32 tokens in a row in common"));
}

TEST(TextOverlap, OfShortDocumentsIsTheWholeDocument) {
  EXPECT_EQ(refusal(counting(0, 8), counting(1, 8)), "accepted");
  EXPECT_THAT(refusal(counting(0, 8), counting(0, 8)), HasSubstr("have 8 tokens in a row in common"));
}

TEST(TextOverlap, DoesNotCountTheBos) {
  std::vector<std::int32_t> a = counting(10, 8), b = counting(10, 8);
  a[0] = 1;
  b[0] = 2;
  EXPECT_EQ(refusal(a, b), "accepted");
  EXPECT_THAT(refusal(a, b, 1), HasSubstr("have 7 tokens in a row in common"));
}

}  // namespace text_overlap_test
}  // namespace gainlens::interventions
