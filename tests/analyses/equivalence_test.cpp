#include "analyses/equivalence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace gainlens::analyses {
namespace equivalence_test {

TEST(Equivalence, SmallChangesAreEquivalentEvenWhereCertain) {
  // Mean 0.03, standard error 0.001: clearly not 0, and clearly within 0.1.
  const Equivalence found = test_equivalence(std::array{0.029, 0.030, 0.031, 0.030}, 0.1);
  EXPECT_EQ(found.flatness, Flatness::equivalent);
  EXPECT_LT(*found.difference_p, 0.001);
  EXPECT_EQ(in_words(found), "equivalent to flat within ±0.1");
}

TEST(Equivalence, LargeChangesChange) {
  EXPECT_EQ(test_equivalence(std::array{0.29, 0.31, 0.30}, 0.1).flatness, Flatness::changes);
  EXPECT_EQ(test_equivalence(std::array{-0.29, -0.31, -0.30}, 0.1).flatness, Flatness::changes);
  EXPECT_EQ(in_words(test_equivalence(std::array{0.29, 0.31, 0.30}, 0.1)), "changes");
}

TEST(Equivalence, NoiseShowsNeither) {
  const Equivalence found = test_equivalence(std::array{0.3, -0.3, 0.1, -0.1}, 0.1);
  EXPECT_EQ(found.flatness, Flatness::not_shown);
  EXPECT_EQ(in_words(found), "not shown to be flat within ±0.1");
}

TEST(Equivalence, TheNinetyPercentIntervalDecides) {
  // two chunks at 0.1 -+ 0.01: mean 0.1, error 0.01, t(0.95, 1) = 6.313752
  const Equivalence found = test_equivalence(std::array{0.09, 0.11}, 0.1 + 6.32 * 0.01);
  EXPECT_NEAR(found.interval->high, 0.1 + 6.313752 * 0.01, 1e-7);
  EXPECT_EQ(found.flatness, Flatness::equivalent);
  EXPECT_EQ(test_equivalence(std::array{0.09, 0.11}, 0.1 + 6.30 * 0.01).flatness, Flatness::not_shown);
}

TEST(Equivalence, BeyondTheMarginIsWhereThe95PercentIntervalIs) {
  // two chunks at 0.2 -+ 0.01: error 0.01, t(0.975, 1) = 12.7062
  const auto exceeds = [](double margin) { return *test_equivalence(std::array{0.19, 0.21}, margin).exceeds_p; };
  EXPECT_NEAR(exceeds(0.2 - 12.7062 * 0.01), 0.05, 1e-6);
  EXPECT_EQ(exceeds(0.2), 1);
  EXPECT_EQ(exceeds(0.3), 1);  // a mean within the margin is no evidence for a change beyond the margin
  EXPECT_NEAR(*test_equivalence(std::array{-0.19, -0.21}, 0.2 - 12.7062 * 0.01).exceeds_p, 0.05, 1e-6);
}

TEST(Equivalence, ASpreadAtRoundingIsNoResult) {
  for (const double change : {0.0, 0.05, 0.5}) {
    const Equivalence found = test_equivalence(std::array{change, change + 1e-16, change}, 0.1);
    EXPECT_EQ(found.flatness, Flatness::unknown) << change;
    EXPECT_EQ(found.difference_p.reason(), same_in_every_chunk);
    EXPECT_FALSE(found.p || found.exceeds_p || found.interval);
  }
  EXPECT_EQ(test_equivalence(std::array{0.5, 0.501}, 0.1).flatness, Flatness::changes);
}

TEST(Equivalence, OneChunkIsNotKnown) {
  const Equivalence found = test_equivalence(std::array{0.0}, 0.1);
  EXPECT_EQ(found.flatness, Flatness::unknown);
  EXPECT_EQ(in_words(found), "not known: an equivalence test needs at least 2 chunks; there is 1");
  EXPECT_EQ(to_json(test_equivalence({}, 0.1, "no gate"))["equivalence_p_reason"], "no gate");
}

}  // namespace equivalence_test
}  // namespace gainlens::analyses
