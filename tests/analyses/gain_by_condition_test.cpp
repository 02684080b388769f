#include "analyses/gain_by_condition.h"

#include "analyses/arm_pairs.h"
#include "runfile/made_recommend_run.h"
#include "support/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace gainlens::analyses {
namespace gain_by_condition_test {

using gainlens::testing::made_recommend_run;
using gainlens::testing::MadeRecommender;
using gainlens::testing::refusal_of;
using ::testing::HasSubstr;

/// The comparison of plain and bft on the users of a seed.
ConditionGain gain_at(double condition, std::uint64_t users_seed = 0) {
  MadeRecommender made;
  made.users_seed = users_seed;
  const auto run = std::make_shared<const runfile::RecommendRun>(made_recommend_run(made));
  std::vector<RecommenderArm> arms = {{"run", run, 0}, {"run", run, 1}};
  name_arms(arms);
  RecommenderOptions options;
  options.resamples.count = 50;
  return {condition, compare_arms({arms[0], arms[1]}, options), {}};
}

TEST(GainByCondition, PointsOfACandidateStandByRisingConditionWithHolmOverAll) {
  ConditionGain other = gain_at(0.5, 2);
  other.comparison.candidate_arm = "gate";
  const std::vector<GainByCondition> all = gains_by_condition({gain_at(1), other, gain_at(0.25, 1)});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].candidate, "bft");
  EXPECT_EQ(all[0].baseline, "plain");
  ASSERT_EQ(all[0].points.size(), 2u);
  EXPECT_EQ(all[0].points[0].condition, 0.25);
  EXPECT_EQ(all[0].points[1].condition, 1);
  EXPECT_EQ(all[1].candidate, "gate");
  // Each point keeps its own rows, and Holm counts those of all.
  const std::vector<GainDecision> expected =
      decide(std::vector<ArmComparison>{gain_at(1).comparison, other.comparison, gain_at(0.25, 1).comparison});
  const std::size_t metrics = other.comparison.metrics.size();
  const auto expect_rows = [&](const ConditionGain& point, std::size_t comparison) {
    ASSERT_EQ(point.decisions.size(), metrics);
    for (std::size_t metric = 0; metric < metrics; ++metric) {
      EXPECT_EQ(*point.decisions[metric].p, *expected[comparison * metrics + metric].p);
      EXPECT_EQ(*point.decisions[metric].holm, *expected[comparison * metrics + metric].holm);
    }
  };
  expect_rows(all[0].points[1], 0);
  expect_rows(all[1].points[0], 1);
  expect_rows(all[0].points[0], 2);

  const OrderedJson json = to_json(all[0]);
  ASSERT_EQ(json["points"].size(), 2u);
  EXPECT_EQ(json["points"][0]["condition"], 0.25);
  EXPECT_EQ(json["points"][1]["hr@10"]["log_ratio"]["value"], gain_at(1).comparison.metrics[0].log_ratio->value);
}

TEST(GainByCondition, WhatCannotBeOneCurveIsRefused) {
  EXPECT_THAT(refusal_of([] {
                gains_by_condition({gain_at(1), gain_at(1, 1)});
              }),
              HasSubstr("condition 1: stands twice for bft"));
  EXPECT_THAT(refusal_of([] { gains_by_condition({gain_at(std::numeric_limits<double>::infinity())}); }),
              HasSubstr("give a finite number"));
  ConditionGain other = gain_at(2, 1);
  other.comparison.baseline_arm = "gate";
  EXPECT_THAT(refusal_of([&] {
                gains_by_condition({gain_at(1), other});
              }),
              HasSubstr("bft is compared with gate, and with plain under another condition"));
  EXPECT_THAT(refusal_of([] {
                ConditionGain other = gain_at(2, 1);
                other.comparison.backbone = "bert4rec";
                gains_by_condition({gain_at(1), other});
              }),
              HasSubstr("condition 2: its models are bert4rec, and those of condition 1 sasrec"));
}

}  // namespace gain_by_condition_test
}  // namespace gainlens::analyses
