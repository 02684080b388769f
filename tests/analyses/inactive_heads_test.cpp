#include "analyses/inactive_heads.h"

#include "analyses/statistics.h"
#include "analyses/synthetic_run.h"
#include "analyses/value_norms.h"
#include "support/refusal.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace gainlens::analyses {
namespace inactive_heads_test {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAreArray;

HeadScore score(const std::string& source, bool largest_first, std::vector<double> values) {
  return {source == "filter" ? "b" : "a", source, largest_first, std::move(values)};
}

TEST(InactiveHeads, ScoresOrderTheHeads) {
  EXPECT_THAT(order_of(score("filter", true, {1, 3, 2, 3})), ElementsAre(1, 3, 2, 0));
  EXPECT_THAT(order_of(score("filter", false, {1, 3, 2, 1})), ElementsAre(0, 3, 2, 1));
  const std::vector<std::size_t> all = {0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_THAT(random_order(8, 3, 0), UnorderedElementsAreArray(all));
  EXPECT_EQ(random_order(8, 3, 0), random_order(8, 3, 0));
  EXPECT_NE(random_order(8, 3, 0), random_order(8, 3, 1));
  EXPECT_THAT(zeroed_counts(60), ElementsAre(3, 6, 9, 12, 15, 18));
  EXPECT_THAT(zeroed_counts(12), ElementsAre(1, 2, 3, 4));  // 5% and 10% are one head
  EXPECT_THAT(gainlens::testing::refusal_of([] { zeroed_counts(1); }), ::testing::HasSubstr("1 heads are too few"));
}

TEST(InactiveHeads, TellsWhereTheNumberOfAHeadChooses) {
  // 12 heads: 1, 2, 3 or 4 are set to zero. Heads 2, 5 and 7 have the smallest score, then comes head 0.
  const std::vector<double> values = {2, 3, 1, 4, 5, 1, 6, 1, 7, 8, 9, 10};
  const std::vector<BrokenTie> ties = broken_ties(score("filter", false, values));
  ASSERT_EQ(ties.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(ties[i].share, static_cast<double>(i + 1) / 12);
    EXPECT_EQ(ties[i].equal, 3u);
    EXPECT_EQ(ties[i].taken, i + 1);
  }
  EXPECT_TRUE(broken_ties(score("filter", true, values)).empty());
  EXPECT_EQ(broken_ties(score("filter", true, std::vector<double>(12, 0))).size(), 4u);
  InactiveHeadsInput input;
  input.scores = {score("filter", false, values)};
  input.shares = {1.0 / 12, 2.0 / 12, 3.0 / 12, 4.0 / 12};
  input.single.assign(12, {0.1, 0.2});
  input.by_score = {{{0.1, 0.2}, {0.1, 0.2}, {0.1, 0.2}, {0.1, 0.2}}};
  input.by_random = {input.by_score[0], input.by_score[0]};
  const OrderedJson json = to_json(inactive_heads(input));
  EXPECT_EQ(json.at("scores").at(0).at("ties").at(1).dump(), R"({"share":0.16666666666666666,"equal":3,"taken":2})");
}

/// Worked by hand: four heads, two shares, two documents.
TEST(InactiveHeads, AreasByHand) {
  InactiveHeadsInput input;
  input.scores = {score("literature", false, {1, 2, 3, 4}), score("filter", true, {1, 2, 3, 4})};
  input.shares = {0.25, 0.5};
  input.single = {{0.1, 0.3}, {0.2, 0.2}, {0.5, 0.3}, {1, 2}};
  input.by_score = {{{0.2, 0.4}, {0.4, 1.0}}, {{1, 2}, {2, 4}}};
  input.by_random = {{{0.4, 0.4}, {0.8, 0.8}}, {{0.2, 0.4}, {0.4, 0.8}}};
  const InactiveHeads found = inactive_heads(input);
  EXPECT_EQ(found.documents, 2u);
  EXPECT_EQ(found.heads, 4u);
  // Document 0 of the first score: trapezoids 0.25 (0 + 0.2) / 2 + 0.25 (0.2 + 0.4) / 2 over 0.5 are 0.2.
  ASSERT_EQ(found.curves.size(), 2u);
  EXPECT_EQ(found.curves[0].name, "a");
  EXPECT_NEAR(found.curves[0].area, (0.2 + 0.45) / 2, 1e-12);
  EXPECT_NEAR(found.curves[0].changes[1], 0.7, 1e-12);
  EXPECT_NEAR(found.curves[1].area, (1 + 2) / 2.0, 1e-12);
  EXPECT_NEAR(found.random_area, (0.3 + 0.4) / 2, 1e-12);
  EXPECT_NEAR(found.random_changes[0], 0.35, 1e-12);
  EXPECT_NEAR(found.curves[0].against_random, 0.325 - 0.35, 1e-12);
  // The draws have 0.4 and 0.3: one of the two does better than 0.325, which is too few for a p.
  ASSERT_EQ(found.area_of_draw.size(), 2u);
  EXPECT_NEAR(found.area_of_draw[0], 0.3, 1e-12);
  EXPECT_NEAR(found.area_of_draw[1], 0.4, 1e-12);
  EXPECT_EQ(found.curves[0].among_random.lower, 1u);
  EXPECT_EQ(found.curves[1].among_random.lower, 2u);
  EXPECT_THAT(found.curves[0].among_random.p.reason(), ::testing::HasSubstr("fewer than 39 draws cannot reach 5%"));
  // The single changes are 0.2, 0.2, 0.4, 1.5: ranks 1.5, 1.5, 3, 4 against 1, 2, 3, 4.
  EXPECT_NEAR(*found.curves[0].spearman, 4.5 / std::sqrt(5 * 4.5), 1e-12);
  EXPECT_NEAR(*found.curves[1].spearman, -4.5 / std::sqrt(5 * 4.5), 1e-12);
  EXPECT_EQ(found.best_literature, "a");
  EXPECT_EQ(found.best_filter, "b");
  EXPECT_NEAR(found.filter_minus_literature, 1.5 - 0.325, 1e-12);
  const OrderedJson json = to_json(found);
  EXPECT_EQ(json.at("scores").at(0).at("score"), "a");
  EXPECT_EQ(json.at("scores").size(), 2u);
  EXPECT_EQ(json.at("scores").at(0).at("random_better").at("draws"), 1);
  EXPECT_EQ(json.at("scores").at(0).at("random_better").at("of"), 2);
  EXPECT_TRUE(json.at("scores").at(0).at("random_p").is_null());
  EXPECT_EQ(json.at("random").at("area_of_draw").size(), 2u);
}

/// Clopper and Pearson 1934 by their closed ends: of none of n, 1 - (tail)^(1/n).
TEST(Exceedance, SharesAreExactAndRanksCountTheNumberItself) {
  std::vector<double> draws(39);
  for (std::size_t i = 0; i < draws.size(); ++i) draws[i] = static_cast<double>(i);
  const Exceedance least = exceedance(-1, draws);
  EXPECT_EQ(least.lower, 0u);
  EXPECT_EQ(least.share.low, 0);
  EXPECT_NEAR(least.share.high, 1 - std::pow(0.025, 1.0 / 39), 1e-12);
  EXPECT_NEAR(*least.p, 0.05, 1e-12);  // 2 x 1 / 40
  const Exceedance most = exceedance(100, draws);
  EXPECT_NEAR(most.share.low, std::pow(0.025, 1.0 / 39), 1e-12);
  EXPECT_EQ(most.share.high, 1);
  EXPECT_NEAR(*most.p, 0.05, 1e-12);
  EXPECT_NEAR(*exceedance(1.5, draws).p, 2 * 3 / 40.0, 1e-12);
  const Exceedance tie = exceedance(0, draws);
  EXPECT_EQ(tie.lower, 0u);
  EXPECT_EQ(tie.ties, 1u);
  EXPECT_NEAR(*tie.p, 2 * 2 / 40.0, 1e-12);
  EXPECT_GT(tie.share.high, least.share.high);
  draws.pop_back();
  EXPECT_FALSE(exceedance(-1, draws).p);
}

TEST(InactiveHeads, ScoresComeFromASweep) {
  const gainlens::testing::TemporaryFolder folder;
  const gainlens::testing::SyntheticRun run;
  const auto reader = gainlens::testing::write_run(folder.path() / "run", run);
  const std::vector<HeadScore> scores = head_scores(reader).scores;
  EXPECT_EQ(scores.size(), 14u);  // the mean norm of values is planted alike in all heads of a layer
  for (const HeadScore& one : scores) EXPECT_EQ(one.values.size(), 32u) << one.name;
  const auto named = [&](const std::string& name) { return *std::ranges::find(scores, name, &HeadScore::name); };
  // Over the mean of the layer: the four heads of a layer have the mean 1.
  const std::vector<double> relative = named("weight of key 0 / layer").values;
  for (std::size_t layer = 0; layer < 8; ++layer)
    EXPECT_NEAR((relative[4 * layer] + relative[4 * layer + 1] + relative[4 * layer + 2] + relative[4 * layer + 3]) / 4,
                1, 1e-9);
  // Two query heads share a KV head, and so its values.
  const std::vector<double> norms = named("|v_0|").values;
  EXPECT_EQ(norms[0], norms[1]);
  EXPECT_EQ(norms[2], norms[3]);
}

TEST(InactiveHeads, ALayerWithFewerKvHeadsHasTheirValues) {
  const gainlens::testing::TemporaryFolder folder;
  gainlens::testing::SyntheticRun run;
  run.kv_heads = 4;
  run.layer_kv_heads.assign(8, 4);
  run.layer_kv_heads[0] = 2;
  // Stored as a sweep does: in layer 0 each KV head stands twice in a row.
  run.value = [](const gainlens::testing::CellKey& key) -> std::optional<double> {
    if (key.name != "values/first_norm" || key.last != 0) return std::nullopt;
    return 1.0 + static_cast<double>(key.layer == 0 ? key.head / 2 : key.head);
  };
  const runfile::RunReader reader = gainlens::testing::write_run(folder.path() / "run", run);
  EXPECT_EQ(reader.kv_heads(), 4);
  EXPECT_EQ(reader.kv_heads(0), 2);
  EXPECT_EQ(reader.kv_heads(1), 4);
  const HeadScores found = head_scores(reader);
  const auto norms = std::ranges::find(found.scores, "|v_0|", &HeadScore::name);
  ASSERT_NE(norms, found.scores.end());
  EXPECT_THAT(std::vector(norms->values.begin(), norms->values.begin() + 8), ElementsAre(1, 1, 2, 2, 1, 2, 3, 4));
  const auto counted = value_norms(reader);
  ASSERT_TRUE(counted);
  EXPECT_EQ(counted->heads.size(), 2u + 7 * 4u) << "a KV head that stands twice counts once";
  EXPECT_EQ(counted->heads[1].kv_head, 1);
}

TEST(InactiveHeads, ScoresThatOrderNothingAreLeftOut) {
  const gainlens::testing::TemporaryFolder folder;
  gainlens::testing::SyntheticRun run;
  run.kv_heads = 1;  // all heads of a layer have the same values
  const HeadScores found = head_scores(gainlens::testing::write_run(folder.path() / "run", run));
  EXPECT_EQ(found.scores.size(), 13u);
  EXPECT_THAT(found.left_out, ElementsAre(::testing::HasSubstr("|v_0| / layer: all heads of a layer have the same"),
                                          ::testing::HasSubstr("mean |v| / layer: all heads of a layer")));
}

}  // namespace inactive_heads_test
}  // namespace gainlens::analyses
