#include "generation/next_token.h"

#include "core/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace gainlens::generation {
namespace next_token_test {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const std::vector<double> logits = {std::log(1.0), std::log(5.0), std::log(1.0), std::log(3.0)};

/// How often each of the four tokens is drawn.
std::vector<double> shares(const Sampling& sampling) {
  Random random(7);
  std::vector<double> found(logits.size());
  constexpr int draws = 20000;
  for (int i = 0; i < draws; ++i) ++found[static_cast<std::size_t>(drawn_token(logits, sampling, random).id)];
  for (double& share : found) share /= draws;
  return found;
}

TEST(NextToken, TheMostLikelyIsTheFirstOfEqualOnes) {
  const ChosenToken found = most_likely_token(logits);
  EXPECT_EQ(found.id, 1);
  EXPECT_NEAR(found.log_probability, std::log(0.5), 1e-15);
  EXPECT_EQ(most_likely_token(std::vector<double>{-3, 2, 2, 1}).id, 1);
  EXPECT_NEAR(most_likely_token(std::vector<double>{1e300, 0}).log_probability, 0, 1e-15);
}

TEST(NextToken, IsDrawnInItsShare) {
  const std::vector<double> found = shares({});
  const std::vector<double> expected = {0.1, 0.5, 0.1, 0.3};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(found[i], expected[i], 0.015) << i;
}

TEST(NextToken, TemperatureIsAPowerOfTheProbabilities) {
  const std::vector<double> found = shares({.temperature = 0.5});
  for (std::size_t i = 0; i < 4; ++i) {
    const double weight = std::exp(2 * logits[i]);
    EXPECT_NEAR(found[i], weight / 36, 0.015) << i;  // 1 + 25 + 1 + 9
  }
  EXPECT_EQ(shares({.temperature = 1e-3})[1], 1);
}

TEST(NextToken, TopPKeepsTheFewestThatHaveTheShare) {
  // 0.5 alone is less than 0.6; with 0.3 it is enough.
  const std::vector<double> found = shares({.top_p = 0.6});
  EXPECT_EQ(found[0] + found[2], 0);
  EXPECT_NEAR(found[1], 5.0 / 8, 0.015);
  EXPECT_EQ(shares({.top_p = 0.4})[1], 1);
  EXPECT_EQ(shares({.top_p = 1e-9})[1], 1);
  // Of the two equal ones the first is kept.
  EXPECT_GT(shares({.top_p = 0.85})[0], 0);
  EXPECT_EQ(shares({.top_p = 0.85})[2], 0);
}

TEST(NextToken, TheLogProbabilityIsThatOfTheModel) {
  Random random(1);
  const ChosenToken found = drawn_token(logits, {.temperature = 0.1, .top_p = 0.3}, random);
  EXPECT_EQ(found.id, 1);
  EXPECT_NEAR(found.log_probability, std::log(0.5), 1e-15);
}

TEST(NextToken, NumbersOutOfTheirRangeAreRefused) {
  for (const double wrong : {0.0, -1.0, std::nan(""), double{INFINITY}}) {
    EXPECT_THAT([&] { check_sampling({.temperature = wrong}); },
                ThrowsMessage<InvalidArgument>(HasSubstr("must be a finite number above 0")));
  }
  for (const double wrong : {0.0, -1.0, 1.01, std::nan("")})
    EXPECT_THAT([&] { check_sampling({.top_p = wrong}); }, ThrowsMessage<InvalidArgument>(HasSubstr("--top-p")));
  check_sampling({.temperature = 5, .top_p = 1});
}

}  // namespace next_token_test
}  // namespace gainlens::generation
