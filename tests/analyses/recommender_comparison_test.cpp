#include "analyses/recommender_comparison.h"

#include "runfile/made_recommend_run.h"
#include "support/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gainlens::analyses {
namespace recommender_comparison_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::made_recommend_run;
using testing::MadeRecommender;

ArmPair pair_of(const runfile::RecommendRun& run) {
  const auto shared = std::make_shared<const runfile::RecommendRun>(run);
  std::vector<RecommenderArm> arms = {{"run", shared, 0}, {"run", shared, 1}};
  name_arms(arms);
  return {arms[0], arms[1]};
}

RecommenderOptions few_resamples() {
  RecommenderOptions options;
  options.resamples.count = 50;
  return options;
}

/// Four users, two seeds, three items. Ranks in hits at 10: plain 1 of 4 in both runs, bft 2 of 4 and 3 of 4.
runfile::RecommendRun four_users() {
  MadeRecommender made;
  made.users = 4;
  made.items = 30;
  made.seeds = {3, 5};
  runfile::RecommendRun run = made_recommend_run(made);
  run.target = {1, 2, 2, 3};
  run.training_length = {1, 1, 4, 4};
  run.history_length = {2, 2, 5, 5};
  run.item_train_count.assign(30, 0);
  run.item_train_count[0] = 1;
  run.item_train_count[1] = 9;
  run.results[0]->scores.at("rank") = {1, 20, 20, 20};
  run.results[1]->scores.at("rank") = {1, 20, 20, 20};
  run.results[2]->scores.at("rank") = {1, 10, 10.5, 20};
  run.results[3]->scores.at("rank") = {1, 10, 10, 20};
  return run;
}

TEST(RecommenderComparison, MeansAndDifferencesByHand) {
  const ArmComparison comparison = compare_arms(pair_of(four_users()), few_resamples());
  EXPECT_EQ(comparison.title(), "bft against plain on made (sasrec)");
  EXPECT_THAT(comparison.baseline_seeds, ElementsAre(3, 5));
  const MetricGain& hits = comparison.metrics.front();
  EXPECT_EQ(hits.metric.name(), "hr@10");
  EXPECT_DOUBLE_EQ(hits.seeds.baseline.mean, 0.25);
  EXPECT_DOUBLE_EQ(hits.seeds.candidate.mean, 0.625);  // a rank of 10.5 is no hit at 10
  EXPECT_THAT(hits.seed_differences, ElementsAre(0.25, 0.5));
  EXPECT_DOUBLE_EQ(*hits.seeds.relative, 1.5);
  ASSERT_TRUE(hits.log_ratio) << hits.log_ratio.reason();
  EXPECT_DOUBLE_EQ(hits.log_ratio->value, std::log(2.5));
  EXPECT_EQ(hits.log_ratio->units, 3u);  // users 1 and 2 share their target
}

TEST(RecommenderComparison, StrataFollowTheCounts) {
  RecommenderOptions options = few_resamples();
  options.item_edges = {0, 4};
  const ArmComparison comparison = compare_arms(pair_of(four_users()), options);
  EXPECT_THAT(comparison.by_item.strata.stratum, ElementsAre(1, 2, 2, 0));
  EXPECT_FALSE(comparison.by_item.shares_edges);
  EXPECT_THAT(comparison.by_user.strata.stratum, ElementsAre(0, 0, 1, 1));
  const std::vector<StratumGain>& strata = comparison.by_item.gains->front().strata;
  EXPECT_EQ(strata[2].users, 2u);
  EXPECT_DOUBLE_EQ(*strata[2].candidate, 0.75);  // 3 of 4 hits of users 1 and 2
  EXPECT_DOUBLE_EQ(comparison.by_item.composition[2].mean_history_length, 3.5);
  // known items 2 2 5 5, target counts 1 9 9 0
  EXPECT_NEAR(comparison.length_frequency_correlation, -1.5 / std::sqrt(9 * 72.75), 1e-12);
  EXPECT_TRUE(compare_arms(pair_of(four_users()), few_resamples()).by_item.shares_edges);
}

TEST(RecommenderComparison, StrataCarryWhatThePaperPrints) {
  ArmComparison comparison = compare_arms(pair_of(four_users()), few_resamples());
  const auto rarest = [&] { return to_json(comparison)["strata"]["item_frequency"]["metrics"]["hr@10"]["strata"][0]; };
  EXPECT_FALSE(rarest().contains("paper_relative_difference"));
  comparison.paper = {"Sports", false};
  EXPECT_EQ(rarest()["paper_relative_difference"], 0.145);  // bft.tex, Table cold-item
}

TEST(RecommenderComparison, ArmsOfTwoBackbonesAreNamedAndHaveNoNumbersOfThePaper) {
  runfile::RecommendRun sasrec = four_users(), other = four_users();
  other.request["backbone"] = "bert4rec";
  ArmPair pair = pair_of(sasrec);
  pair.candidate.run = pair_of(other).candidate.run;
  ArmComparison comparison = compare_arms(pair, few_resamples());
  EXPECT_EQ(comparison.title(), "bft against plain on made (bert4rec against sasrec)");
  comparison.paper = {"Sports", false};
  EXPECT_EQ(paper_gain(comparison, {RankingMetric::Kind::gain, 10}), nullptr);
}

TEST(RecommenderComparison, OneStratumHasNoGains) {
  runfile::RecommendRun run = four_users();
  run.training_length = {2, 2, 2, 2};
  const ArmComparison comparison = compare_arms(pair_of(run), few_resamples());
  EXPECT_EQ(comparison.by_user.gains.reason(), "all users are in one stratum");
  const OrderedJson json = to_json(comparison);
  EXPECT_TRUE(json["strata"]["user_activity"]["metrics"].is_null());
  EXPECT_EQ(json["strata"]["user_activity"]["metrics_reason"], "all users are in one stratum");
}

TEST(RecommenderComparison, EdgesMustRise) {
  RecommenderOptions options = few_resamples();
  options.item_edges = {4, 4};
  EXPECT_THAT(testing::refusal_of([&] { compare_arms(pair_of(four_users()), options); }),
              HasSubstr("edge 4 after 4; edges must rise"));
}

TEST(RecommenderComparison, CurvesKeepSeedsAndBestEpochs) {
  const runfile::RecommendRun run = made_recommend_run();
  const ArmComparison comparison = compare_arms(pair_of(run), few_resamples());
  ASSERT_EQ(comparison.candidate_curves.size(), 3u);
  EXPECT_EQ(comparison.candidate_curves[2].seed, 2);
  EXPECT_EQ(comparison.candidate_curves[2].values, run.result(1, 2)->curve.at("ndcg@10"));
  EXPECT_EQ(comparison.candidate_curves[2].best_epoch, run.result(1, 2)->best_epoch);
}

TEST(RecommenderComparison, TwoDataSetsArePooledOneIsNot) {
  std::vector<ArmComparison> comparisons;
  for (const std::uint64_t seed : {0u, 1u, 1u}) {
    MadeRecommender made;
    made.users_seed = seed;
    made.data = seed == 0 ? "Beauty" : "Toys";
    comparisons.push_back(compare_arms(pair_of(made_recommend_run(made)), few_resamples()));
  }
  EXPECT_TRUE(pool_comparisons({comparisons.data(), 1}, {}).empty());
  const auto pooled = pool_comparisons(comparisons, {});
  ASSERT_EQ(pooled.size(), 1u);
  EXPECT_EQ(pooled[0].candidate_arm, "bft");
  ASSERT_EQ(pooled[0].metrics.size(), 3u);
  EXPECT_THAT(pooled[0].metrics[0].names, ElementsAre("Beauty", "Toys"));  // a split counts once
  comparisons[1].candidate_arm = comparisons[2].candidate_arm = "other";
  EXPECT_TRUE(pool_comparisons(comparisons, {}).empty());
}

TEST(PaperGains, AreShownBesideTheArmsOfThePaperAlone) {
  ArmComparison comparison;
  comparison.data_set = "any.name";
  comparison.paper = {"Sports", false};
  comparison.backbone = "sasrec";
  comparison.baseline_arm = "plain";
  comparison.candidate_arm = "bft";
  const RankingMetric metric{RankingMetric::Kind::gain, 10};
  EXPECT_NE(paper_gain(comparison, metric), nullptr);
  EXPECT_NE(paper_stratum(comparison, StratumKind::item_frequency, 0, metric), nullptr);
  comparison.baseline_arm = "markov";
  EXPECT_EQ(paper_gain(comparison, metric), nullptr);
  EXPECT_EQ(paper_stratum(comparison, StratumKind::item_frequency, 0, metric), nullptr);
  comparison.baseline_arm = "plain";
  comparison.paper = {};
  EXPECT_EQ(paper_gain(comparison, metric), nullptr);
}

TEST(PaperGains, DataAreKnownByTheirSizeAndNotByTheNameOfAFile) {
  // Amazon's own files, counted; the paper prints thousands.
  EXPECT_EQ(paper_match("", 19412, 11924, 167597).data_set, "Toys");  // Toys_and_Games.txt
  EXPECT_EQ(paper_match("", 24303, 10672, 231780).data_set, "Games");
  EXPECT_EQ(paper_match("", 35598, 18357, 296337).data_set, "Sports");
  EXPECT_EQ(paper_match("", 22363, 12101, 198502).data_set, "Beauty");
  EXPECT_EQ(paper_match("", 1429, 900, 10261).data_set, "Instruments");
  EXPECT_EQ(paper_match("", 6040, 3416, 999611).data_set, "ML-1M");
  EXPECT_FALSE(paper_match("", 19412, 11924, 167597).named);
  EXPECT_EQ(paper_match("", 25598, 18357, 296337).data_set, "");  // the misprint
  EXPECT_EQ(paper_match("", 19412, 11924, 190000).data_set, "");
  EXPECT_EQ(paper_match("", 19412, 11925, 167597).data_set, "");
  MadeRecommender made;
  made.data = "my-games-2024";
  EXPECT_EQ(compare_arms(pair_of(made_recommend_run(made)), few_resamples()).paper.data_set, "");
}

TEST(PaperGains, AUserCanNameTheDataSet) {
  EXPECT_EQ(parse_paper_data_set("toys"), "Toys");
  EXPECT_EQ(parse_paper_data_set("None"), "none");
  EXPECT_THAT(
      testing::refusal_of([] { parse_paper_data_set("tosy"); }),
      HasSubstr("--paper: 'tosy'; must be one of ML-1M, Instruments, Beauty, Sports, Toys, Games, none; did you mean"));
  RecommenderOptions options = few_resamples();
  options.paper = "Toys";
  const ArmComparison comparison = compare_arms(pair_of(made_recommend_run()), options);
  EXPECT_TRUE(comparison.paper.named);
  EXPECT_EQ(in_words(comparison.paper), "Toys, which --paper names");
  EXPECT_EQ(paper_gain(comparison, {RankingMetric::Kind::hit, 10})->baseline, 0.0872);
  EXPECT_EQ(paper_match("none", 19412, 11924, 167597).data_set, "");
}

TEST(PaperGains, CellsOfTheTables) {
  const PaperGain* const beauty = find_paper_gain("sasrec", "Beauty", "hr@10");
  ASSERT_NE(beauty, nullptr);
  EXPECT_EQ(beauty->baseline, 0.0881);
  EXPECT_EQ(beauty->candidate, 0.0890);
  EXPECT_EQ(beauty->p, ".087");
  EXPECT_EQ(find_paper_gain("hstu", "Instruments", "hr@10")->relative, 0.151);
  EXPECT_EQ(find_paper_gain("bert4rec", "Games", "mrr")->relative, -0.005);
  EXPECT_EQ(find_paper_gain("sasrec", "ML-1M", "hr@20"), nullptr);
  EXPECT_EQ(find_paper_gain("sasrec", "", "hr@10"), nullptr);
  EXPECT_EQ(find_paper_gain("gru4rec", "Beauty", "hr@10"), nullptr);
}

TEST(PaperGains, PrintedChangesAreThoseOfThePrintedMeans) {
  ASSERT_EQ(paper_gains().size(), 54u);
  for (const PaperGain& gain : paper_gains()) {
    // Both means are rounded to 4 decimals, the change to 3.
    const double rounding = 0.0005 + 0.00005 * (1 / gain.baseline + gain.candidate / (gain.baseline * gain.baseline));
    EXPECT_NEAR(gain.candidate / gain.baseline - 1, gain.relative, rounding)
        << gain.backbone << " " << gain.data_set << " " << gain.metric;
  }
}

TEST(PaperGains, Strata) {
  EXPECT_EQ(paper_strata().size(), 20u);
  const double* const rare = find_paper_stratum("sasrec", "Sports", StratumKind::item_frequency, 0, "ndcg@10");
  ASSERT_NE(rare, nullptr);
  EXPECT_EQ(*rare, 0.171);
  EXPECT_EQ(*find_paper_stratum("sasrec", "ML-1M", StratumKind::user_activity, 4, "mrr"), 0.032);
  EXPECT_EQ(find_paper_stratum("sasrec", "Beauty", StratumKind::item_frequency, 0, "mrr"), nullptr);
  EXPECT_EQ(find_paper_stratum("hstu", "Sports", StratumKind::item_frequency, 0, "mrr"), nullptr);
}

}  // namespace recommender_comparison_test
}  // namespace gainlens::analyses
