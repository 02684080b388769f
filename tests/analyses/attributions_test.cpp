#include "analyses/attributions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gainlens::analyses {
namespace {

Attribution some() {
  return {{"a", "b", "c", "d"}, {1, 3}, {{1, 2}, {0, 0}, {-1, -2}, {5, 6}}, {{0, {4, 4}}, {1, {1, 3}}, {3, {2, 1}}}};
}

TEST(Attributions, AreMeansWithTheRankCorrelationOfTheExactOnes) {
  const Attributions found = attributions(some());
  EXPECT_EQ(found.native, 2);
  EXPECT_EQ(found.arms[0].estimate, 1.5);
  EXPECT_EQ(found.arms[0].exact, 4);
  EXPECT_EQ(found.arms[2].exact, std::nullopt);
  // Estimates 1.5, 0, 5.5 have the ranks 2, 1, 3; changes 4, 2, 1.5 the ranks 3, 2, 1: rho = 1 - 6 * 6 / 24.
  EXPECT_NEAR(*found.correlation, -0.5, 1e-12);
  EXPECT_TRUE(found.arms[0].interval);
  EXPECT_FALSE(found.arms[1].interval);
}

TEST(Attributions, MissingCorrelationsHaveAReason) {
  Attribution few = some();
  few.exact.pop_back();
  EXPECT_EQ(attributions(few).correlation.reason(), "fewer than 3 interventions were measured exactly");
  Attribution same = some();
  for (Attribution::Exact& exact : same.exact) exact.changes = {1, 1};
  EXPECT_EQ(attributions(same).correlation.reason(), "all estimates, or all changes, are the same");
}

TEST(Attributions, AreWrittenForOtherPrograms) {
  const OrderedJson json = to_json(attributions(some()));
  EXPECT_NEAR(json.at("rank_correlation").get<double>(), -0.5, 1e-12);
  EXPECT_EQ(json.at("exact"), 3);
  EXPECT_EQ(json.at("arms").at(3).at("estimate"), 5.5);
  EXPECT_FALSE(json.at("arms").at(2).contains("exact"));
}

}  // namespace
}  // namespace gainlens::analyses
