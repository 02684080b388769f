#include "analyses/gain_decisions.h"

#include "runfile/made_recommend_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

namespace gainlens::analyses {
namespace gain_decisions_test {

using ::testing::HasSubstr;
using testing::made_recommend_run;
using testing::MadeRecommender;

ArmComparison compared(const MadeRecommender& made) {
  const auto run = std::make_shared<const runfile::RecommendRun>(made_recommend_run(made));
  std::vector<RecommenderArm> arms = {{"run", run, 0}, {"run", run, 1}};
  name_arms(arms);
  RecommenderOptions options;
  options.resamples.count = 50;
  return compare_arms({arms[0], arms[1]}, options);
}

/// Later arms have lower ranks by the share `gain`.
ArmComparison with_gain(double gain, std::size_t seeds) {
  MadeRecommender made;
  made.gain = gain;
  made.seeds.clear();
  for (std::size_t seed = 0; seed < seeds; ++seed) made.seeds.push_back(static_cast<std::int64_t>(seed));
  made.users = 400;
  return compared(made);
}

TEST(GainDecisions, TheSignAndThePDecide) {
  const std::vector<ArmComparison> comparisons = {with_gain(0.5, 8), with_gain(0, 8), with_gain(-0.9, 8)};
  const std::vector<GainDecision> decisions = decide(comparisons);
  ASSERT_EQ(decisions.size(), 9u);
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    const GainDecision& row = decisions[i];
    EXPECT_EQ(row.comparison, i / 3);
    EXPECT_EQ(row.metric, i % 3);
    const auto& gain = comparisons[row.comparison].metrics[row.metric].log_ratio;
    EXPECT_EQ(*row.p, *gain->p);
    EXPECT_GE(*row.holm, *row.p);
    const Decision expected = *gain->p > 0.05   ? Decision::not_shown
                              : gain->value > 0 ? Decision::better
                                                : Decision::worse;
    EXPECT_EQ(row.decision, expected);
  }
  EXPECT_EQ(decisions[1].in_words(), "better");     // ndcg@10
  EXPECT_EQ(decisions[4].in_words(), "not shown");  // other random ranks alone
  EXPECT_EQ(decisions[7].in_words(), "worse");
}

TEST(GainDecisions, HolmCountsEveryRow) {
  GainDecision row{0, 0, Decision::better, 0.02, 0.06, ""};
  EXPECT_EQ(row.in_words(), "better, not after Holm");
  row.holm = 0.04;
  EXPECT_EQ(row.in_words(), "better");
  const ArmComparison one = with_gain(0.5, 8);
  const double alone = *decide({&one, 1})[1].holm;
  const std::vector<ArmComparison> twice = {one, one};
  EXPECT_GT(*decide(twice)[1].holm, alone);
}

TEST(GainDecisions, FewSeedsDecideNothing) {
  const std::vector<ArmComparison> comparisons = {with_gain(0.5, 1), with_gain(0.5, 2)};
  const std::vector<GainDecision> decisions = decide(comparisons);
  EXPECT_EQ(decisions[1].in_words(), "not decidable: 1 seed");
  EXPECT_EQ(decisions[4].in_words(), "not decidable: 2 seeds");
  EXPECT_FALSE(decisions[4].holm);
  const OrderedJson json = to_json(decisions[4]);
  EXPECT_EQ(json["decision"], "not decidable");
  EXPECT_EQ(json["reason"], "2 seeds");
  EXPECT_TRUE(json["p"].is_null());
}

TEST(GainDecisions, AMeanOf0HasItsOwnReason) {
  ArmComparison comparison = with_gain(0.5, 3);
  comparison.metrics[0].log_ratio = Maybe<CrossedEstimate>::none("a mean is 0: there is no ratio");
  EXPECT_EQ(decide({&comparison, 1})[0].in_words(), "not decidable: a mean is 0: there is no ratio");
}

TEST(GainDecisions, TheNaiveIntervalIsOfTheChange) {
  const SeedComparison& seeds = with_gain(0.5, 4).metrics[1].seeds;
  const Maybe<Interval> interval = naive_relative_interval(seeds);
  ASSERT_TRUE(interval);
  EXPECT_DOUBLE_EQ(interval->low + interval->high, 2 * *seeds.relative);
  EXPECT_DOUBLE_EQ(interval->high * seeds.baseline.mean, seeds.interval->high);
  EXPECT_THAT(naive_relative_interval(with_gain(0.5, 1).metrics[1].seeds).reason(), HasSubstr("2"));
}

}  // namespace gain_decisions_test
}  // namespace gainlens::analyses
