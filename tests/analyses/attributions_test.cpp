#include "analyses/attributions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gainlens::analyses {
namespace attributions_test {

Attribution some() {
  return {.interventions = {"a", "b", "c", "d"},
          .kinds = {"x", "x", "x", "x"},
          .acts = {true, true, false, true},
          .native = {1, 3},
          .estimates = {{1, 2}, {0, 0}, {-1, -2}, {5, 6}},
          .exact = {{0, {4, 4}}, {1, {1, 3}}, {3, {2, 1}}}};
}

TEST(Attributions, AreMeansWithTheRankCorrelationOfTheExactOnes) {
  const Attributions found = attributions(some());
  EXPECT_EQ(found.native, 2);
  EXPECT_EQ(found.arms[0].estimate, 1.5);
  EXPECT_EQ(found.arms[0].exact, 4);
  EXPECT_EQ(found.arms[2].exact, std::nullopt);
  ASSERT_EQ(found.kinds.size(), 1u);
  EXPECT_EQ(found.kinds[0].arms, 4u);
  EXPECT_EQ(found.kinds[0].acting, 3u);
  EXPECT_EQ(found.kinds[0].exact, 3u);
  // Estimates 1.5, 0, 5.5 have the ranks 2, 1, 3; changes 4, 2, 1.5 the ranks 3, 2, 1: rho = 1 - 6 * 6 / 24.
  EXPECT_NEAR(*found.kinds[0].correlation, -0.5, 1e-12);
  EXPECT_TRUE(found.arms[0].interval);
  EXPECT_FALSE(found.arms[1].interval);
  EXPECT_EQ(found.normalised(1).reason(), "there is no other run");
  EXPECT_THAT(by_size(found), ::testing::ElementsAre(3, 0, 2, 1));
}

/// Streams and heads are not ordered together: what one kind tells of the other is nothing.
TEST(Attributions, HaveACorrelationForEachKind) {
  Attribution two = some();
  for (const char* name : {"e", "f", "g"}) two.interventions.emplace_back(name);
  two.kinds.insert(two.kinds.end(), {"y", "y", "y"});
  two.acts.insert(two.acts.end(), {true, true, true});
  two.estimates.insert(two.estimates.end(), {{10, 10}, {20, 20}, {30, 30}});
  two.exact.insert(two.exact.end(), {{4, {1, 1}}, {5, {2, 2}}, {6, {3, 3}}});
  const Attributions found = attributions(two);
  ASSERT_EQ(found.kinds.size(), 2u);
  EXPECT_NEAR(*found.kinds[0].correlation, -0.5, 1e-12);
  EXPECT_EQ(found.kinds[1].kind, "y");
  EXPECT_NEAR(*found.kinds[1].correlation, 1, 1e-12);
}

/// Of 12 drawn of 24, two of which change places. The ends: scipy 1.17's spearmanr and t.ppf, with the larger of both
/// errors (that of the jackknife) times sqrt(1 / 2).
TEST(Attributions, HaveAnIntervalOverTheDraw) {
  Attribution drawn{.native = {0}};
  for (int i = 0; i < 24; ++i) {
    drawn.interventions.push_back(std::to_string(i));
    drawn.kinds.emplace_back("x");
    drawn.acts.push_back(true);
    drawn.estimates.push_back({static_cast<double>(i)});
    const int change = i == 0 ? 2 : i == 2 ? 0 : i;  // the first two of the drawn ones change places
    if (i % 2 == 0) drawn.exact.push_back({static_cast<std::size_t>(i), {static_cast<double>(change)}});
  }
  const Attributions found = attributions(drawn);
  EXPECT_NEAR(*found.kinds[0].correlation, 1 - 12.0 / 1716, 1e-12);
  ASSERT_TRUE(found.kinds[0].interval) << found.kinds[0].interval.reason();
  EXPECT_NEAR(found.kinds[0].interval->low, 0.9731787470, 1e-7);
  EXPECT_NEAR(found.kinds[0].interval->high, 0.9981901838, 1e-7);
  EXPECT_NEAR(to_json(found).at("kinds").at(0).at("rank_correlation_interval").at(0).get<double>(), 0.9731787470, 1e-7);

  // Equal orders: the interval ends at 1, which is the correlation.
  Attribution alike = drawn;
  for (auto& [place, change] : alike.exact) change = {static_cast<double>(place)};
  EXPECT_EQ(*attributions(alike).kinds[0].correlation, 1);
  EXPECT_EQ(attributions(alike).kinds[0].interval->high, 1);

  Attribution all = drawn;
  for (std::size_t i = 1; i < 24; i += 2) all.exact.push_back({i, {static_cast<double>(i)}});
  EXPECT_EQ(attributions(all).kinds[0].interval.reason(), "all that can act were measured");
  EXPECT_EQ(to_json(attributions(all)).at("kinds").at(0).at("rank_correlation_interval_reason"),
            "all that can act were measured");
  Attribution few = drawn;
  few.exact.resize(9);
  EXPECT_EQ(attributions(few).kinds[0].interval.reason(), "an interval needs at least 10 that were measured exactly");
}

TEST(Attributions, MissingCorrelationsHaveAReason) {
  Attribution few = some();
  few.exact.pop_back();
  EXPECT_EQ(attributions(few).kinds[0].correlation.reason(), "fewer than 3 interventions were measured exactly");
  Attribution same = some();
  for (Attribution::Exact& exact : same.exact) exact.changes = {1, 1};
  EXPECT_EQ(attributions(same).kinds[0].correlation.reason(), "all estimates, or all changes, are the same");
}

TEST(Attributions, OfTwoPromptsAreSharesOfTheWayToTheOtherRun) {
  Attribution prompts = some();
  prompts.other = 6;
  const Attributions found = attributions(prompts);
  EXPECT_EQ(*found.normalised(1), 0.25);
  EXPECT_EQ(to_json(found).at("arms").at(0).at("normalised"), 0.375);
  EXPECT_EQ(to_json(found).at("arms").at(0).at("exact_normalised"), 1);
  prompts.other = 2;
  EXPECT_EQ(attributions(prompts).normalised(1).reason(), "both runs have the same number");
}

TEST(Attributions, AreWrittenForOtherPrograms) {
  const OrderedJson json = to_json(attributions(some()));
  EXPECT_NEAR(json.at("kinds").at(0).at("rank_correlation").get<double>(), -0.5, 1e-12);
  EXPECT_EQ(json.at("kinds").at(0).at("exact"), 3);
  EXPECT_EQ(json.at("arms").at(3).at("estimate"), 5.5);
  EXPECT_EQ(json.at("arms").at(2).at("acts"), false);
  EXPECT_FALSE(json.at("arms").at(2).contains("exact"));
  EXPECT_FALSE(json.contains("other"));
}

}  // namespace attributions_test
}  // namespace gainlens::analyses
