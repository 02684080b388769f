#include "analyses/context.h"

#include "analyses/gain_theory.h"
#include "analyses/synthetic_run.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace gainlens::analyses {
namespace context_test {

using gainlens::testing::CellKey;
using gainlens::testing::SyntheticRun;
using gainlens::testing::TemporaryFolder;
using gainlens::testing::write_run;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Four layers; the last one is deep. All numbers are constant over heads and chunks: n_eff is 4 at 16 tokens and 8 at
/// 64 tokens, lambda_obs is 10 and 20, the gate is 0.5 and 0.75.
SyntheticRun planted_run() {
  SyntheticRun run;
  run.lengths = {16, 64};
  run.samples = 2;
  run.nested = true;
  run.layers = 4;
  run.heads = 2;
  run.kv_heads = 1;
  run.value = [](const CellKey& key) -> std::optional<double> {
    if (key.layer != 3) return std::nullopt;  // shallow layers must not count
    const bool is_long = key.length == 64;
    if (key.name == "summary/n_eff") return is_long ? 8.0 : 4.0;
    if (key.name == "summary/observation_precision") return is_long ? 20.0 : 10.0;
    if (key.name == "summary/observation_precision_var") return 25.0;
    if (key.name == "summary/gate") return is_long ? 0.75 : 0.5;
    return std::nullopt;
  };
  return run;
}

TEST(Context, GateAndPrecisionAreComparedLikeForLike) {
  const TemporaryFolder folder;
  const Context result = context(write_run(folder.path() / "run", planted_run()));
  EXPECT_THAT(result.deep_layers, ElementsAre(3));
  const ContextPoint& last = result.points.at(1);
  EXPECT_DOUBLE_EQ(last.n_eff->mean, 8);
  EXPECT_DOUBLE_EQ(*last.precision_ratio, 2);
  EXPECT_DOUBLE_EQ(*last.precision_ratio_deviation, 0.5);    // 5 / 10
  EXPECT_NEAR(*last.logit_gate.mean, std::log(3.0), 1e-12);  // logit 0.75 - logit 0.5
  EXPECT_NEAR(*last.log_precision.mean, std::log(2.0), 1e-12);
  EXPECT_NEAR(*last.difference.mean, std::log(1.5), 1e-12);
  EXPECT_EQ(last.difference.interval.reason(), same_in_every_chunk);  // nothing shows an error
  EXPECT_EQ(last.difference.basis, "2 paired chunks");
  EXPECT_DOUBLE_EQ(*result.points.at(0).logit_gate.mean, 0);
}

TEST(Context, KindsOfAttentionDoNotMix) {
  const TemporaryFolder folder;
  SyntheticRun run = planted_run();
  run.attention = {"window:8", "global", "window:8", "global"};
  run.value = [](const CellKey& key) -> std::optional<double> {
    const bool global = key.layer % 2 == 1;
    if (key.name == "summary/n_eff") return global && key.length == 64 ? 12.0 : 4.0;  // grows only in global layers
    if (key.name == "summary/observation_precision") return global && key.length == 64 ? 30.0 : 10.0;
    return std::nullopt;
  };
  const auto kinds = context_by_attention(write_run(folder.path() / "run", run));
  ASSERT_EQ(kinds.size(), 2u);
  EXPECT_EQ(kinds[0].attention, "window:8");
  EXPECT_THAT(kinds[0].context.deep_layers, ElementsAre(0, 2));
  EXPECT_DOUBLE_EQ(kinds[0].context.points[1].n_eff->mean, 4);
  EXPECT_NEAR(*kinds[0].context.points[1].log_precision.mean, 0, 1e-12);
  EXPECT_EQ(kinds[1].attention, "global");
  EXPECT_THAT(kinds[1].context.deep_layers, ElementsAre(1, 3));
  EXPECT_DOUBLE_EQ(kinds[1].context.points[1].n_eff->mean, 12);
  EXPECT_NEAR(*kinds[1].context.points[1].log_precision.mean, std::log(3.0), 1e-12);
}

TEST(Context, OneKindOfAttentionNeedsNoSecondTable) {
  const TemporaryFolder folder;
  EXPECT_TRUE(context_by_attention(write_run(folder.path() / "run", planted_run())).empty());
}

TEST(Context, NestedChunksArePairedByNumber) {
  const TemporaryFolder folder;
  SyntheticRun run = planted_run();
  run.missing = {{16, 0}};
  const Context result = context(write_run(folder.path() / "run", run));
  EXPECT_EQ(result.points.at(1).difference.basis, "1 paired chunk");  // chunk 1 alone is at both lengths
  EXPECT_THAT(result.points.at(1).difference.interval.reason(), HasSubstr("at least 2 chunks"));
}

/// One head. lambda_obs of a chunk is 10 (16 tokens) or 20 (32 tokens), times exp of the sum of `text` over the
/// 16-token parts of the chunk. The text has six parts.
SyntheticRun textual_run(std::vector<double> text) {
  SyntheticRun run;
  run.lengths = {16, 32};
  run.samples = 3;
  run.bos.reset();
  run.layers = run.heads = run.kv_heads = 1;
  run.value = [text](const CellKey& key) -> std::optional<double> {
    const auto chunk = static_cast<std::size_t>(key.sample);
    if (key.name != "summary/observation_precision") return std::nullopt;
    return key.length == 16 ? 10 * std::exp(text[chunk]) : 20 * std::exp(text[2 * chunk] + text[2 * chunk + 1]);
  };
  return run;
}

TEST(Context, ConsecutiveChunksAreNotPairedByNumber) {
  // By number the differences would be ln 2 + text[1], ln 2 + text[2] + text[3] - text[1], ...: numbers of unlike text
  const TemporaryFolder folder;
  const Context result = context(write_run(folder.path() / "run", textual_run({0.3, -0.3, 0.1, 0.2, -0.2, 0.4})));
  const Change& change = result.points.at(1).log_precision;
  EXPECT_NEAR(*change.mean, std::log(2) + (0.0 + 0.3 + 0.2) / 3 - (0.3 - 0.3 + 0.1) / 3, 1e-12);
  // The three chunks of 16 lie in two chunks of 32.
  EXPECT_EQ(change.basis, "3 chunks of 32 and 3 of 16, with the largest covariance that shared text allows");
  EXPECT_THAT(result.sharing, HasSubstr("the chunks of 16 lie in 2 of the 3 chunks of 32"));
  EXPECT_FALSE(result.paired);
  EXPECT_EQ(to_json(result)["points"][1]["log_observation_precision_change_basis"], change.basis);
}

TEST(Context, TheRatioAndItsIntervalAreOfOneEstimand) {
  // lambda_obs of three nested chunks: 1, 1, 100 and then 2, 2, 100. The ratio of means is 104/102 = 1.02. The mean
  // change of the logarithm is (ln 2 + ln 2 + 0)/3, which is a ratio of geometric means of 1.59. The two need different
  // intervals.
  const TemporaryFolder folder;
  SyntheticRun run;
  run.lengths = {16, 64};
  run.samples = 3;
  run.nested = true;
  run.layers = run.heads = run.kv_heads = 1;
  run.value = [](const CellKey& key) -> std::optional<double> {
    if (key.name != "summary/observation_precision") return std::nullopt;
    return key.sample == 2 ? 100.0 : key.length == 64 ? 2.0 : 1.0;
  };
  const ContextPoint last = context(write_run(folder.path() / "run", run)).points.at(1);
  EXPECT_DOUBLE_EQ(*last.precision_ratio, 104.0 / 102);
  EXPECT_NEAR(*last.log_precision.mean, std::log(4) / 3, 1e-12);
  // On the logarithmic scale, the interval of a ratio is symmetric about this ratio.
  EXPECT_NEAR(std::sqrt(last.precision_ratio_interval->low * last.precision_ratio_interval->high), 104.0 / 102, 1e-12);
  // relative chunk means differ by 2/104*3 - 3/102, twice, and by 300/104 - 300/102
  const double differences[] = {6.0 / 104 - 3.0 / 102, 6.0 / 104 - 3.0 / 102, 300.0 / 104 - 300.0 / 102};
  const Interval logarithm = student_interval({std::log(104.0 / 102), mean_estimate(differences).error, 2});
  EXPECT_NEAR(last.precision_ratio_interval->high, std::exp(logarithm.high), 1e-12);
}

TEST(Context, FlatnessIsTestedAgainstTheMargin) {
  const TemporaryFolder folder;
  SyntheticRun run = planted_run();
  const auto planted_value = run.value;
  run.value = [planted_value](const CellKey& key) -> std::optional<double> {
    if (key.layer == 3 && key.name == "summary/gate" && key.length == 64) return key.sample == 0 ? 0.7501 : 0.7499;
    return planted_value(key);
  };
  const auto reader = write_run(folder.path() / "run", run);
  const Context result = context(reader);
  EXPECT_EQ(result.points.at(1).logit_gate.flat.flatness, Flatness::changes);  // by about ln 3, in both chunks
  EXPECT_EQ(result.points.at(0).logit_gate.flat.flatness,
            Flatness::unknown);  // the shortest length, with which the others are compared
  EXPECT_EQ(context(reader, {.equivalence_margin = 1.2}).points.at(1).logit_gate.flat.flatness, Flatness::equivalent);
  EXPECT_THAT(context(reader).margin_meaning, HasSubstr("multiplies the odds of the gate by 1.11"));
}

TEST(Context, WithoutAGateItIsNullWithTheReason) {
  const TemporaryFolder folder;
  SyntheticRun run = planted_run();
  run.gated = false;
  const OrderedJson json = to_json(context(write_run(folder.path() / "run", run)));
  EXPECT_TRUE(json["points"][1]["gate"].is_null());
  EXPECT_EQ(json["points"][1]["gate_reason"], "the model has no attention gate");
  EXPECT_EQ(json["points"][1]["logit_gate_change_reason"], "the model has no attention gate");
  EXPECT_DOUBLE_EQ(json["points"][1]["observation_precision_ratio"], 2);
}

TEST(Context, PlantedGrowthIsFound) {
  const TemporaryFolder folder;
  SyntheticRun run;  // n_eff - 1 grows as sqrt(T)
  const Context result = context(write_run(folder.path() / "run", run));
  const double growth = (result.points.back().n_eff->mean - 1) / (result.points.front().n_eff->mean - 1);
  EXPECT_NEAR(growth, std::sqrt(8.0), 1e-9);
}

/// One deep layer, d = 2 so that sigma0^2 = 0.5; n_eff 1, 3, 7 and S = 0.5 give lambda* = 2, 4, 8.
SyntheticRun theory_run(std::vector<double> gains) {
  SyntheticRun run;
  run.lengths = {16, 32, 64};
  run.samples = 1;
  run.layers = run.heads = run.kv_heads = 1;
  run.head_dim = 2;
  run.value = [gains](const CellKey& key) -> std::optional<double> {
    const std::size_t i = key.length == 16 ? 0 : key.length == 32 ? 1 : 2;
    if (key.name == "summary/n_eff") return std::array{1.0, 3.0, 7.0}[i];
    if (key.name == "summary/residual") return 0.5;
    if (key.name == "summary/kalman_gain") return gains[i];
    return std::nullopt;
  };
  return run;
}

TEST(GainTheory, OneLambdaPredictsTheOtherLengths) {
  const TemporaryFolder folder;
  // K(16) = 0.5 = 2 / (lambda + 2): lambda = 2; predictions 4/6 and 8/10; measured 0.6 and 0.8
  const GainTheory theory = gain_theory(write_run(folder.path() / "run", theory_run({0.5, 0.6, 0.8})));
  EXPECT_DOUBLE_EQ(*theory.prior_precision, 2);
  EXPECT_DOUBLE_EQ(*theory.points[1].predicted_gain, 4.0 / 6);
  EXPECT_NEAR(*theory.points[1].relative_error, 1.0 / 9, 1e-12);  // (0.6667 - 0.6) / 0.6
  EXPECT_NEAR(*theory.points[1].constant_error, 1.0 / 6, 1e-12);  // (0.6 - 0.5) / 0.6
  EXPECT_NEAR(*theory.points[1].skill, 1.0 / 3, 1e-12);
  EXPECT_NEAR(*theory.points[2].relative_error, 0, 1e-12);
  EXPECT_NEAR(*theory.max_relative_error, 1.0 / 9, 1e-12);
  EXPECT_NEAR(*theory.max_constant_error, 0.375, 1e-12);  // (0.8 - 0.5) / 0.8
  EXPECT_NEAR(*theory.skill, 1 - (1.0 / 9) / (1.0 / 6 + 0.375), 1e-12);
}

TEST(GainTheory, UnchangingGainHasNoSkill) {
  const TemporaryFolder folder;
  const GainTheory theory = gain_theory(write_run(folder.path() / "run", theory_run({0.5, 0.5, 0.5})));
  EXPECT_THAT(theory.skill.reason(), HasSubstr("does not change"));
  EXPECT_GT(*theory.max_relative_error, 0.3);
}

TEST(GainTheory, GainOfOneHasNoLambda) {
  const TemporaryFolder folder;
  const GainTheory theory = gain_theory(write_run(folder.path() / "run", theory_run({1.0, 1.0, 1.0})));
  EXPECT_THAT(theory.prior_precision.reason(), HasSubstr("0 < K < 1"));
  EXPECT_EQ(theory.max_relative_error.reason(), theory.prior_precision.reason());
}

TEST(GainTheory, OneLengthPredictsNothing) {
  const TemporaryFolder folder;
  SyntheticRun run = theory_run({0.5, 0.6, 0.8});
  run.lengths = {16};
  const OrderedJson json = to_json(gain_theory(write_run(folder.path() / "run", run)));
  EXPECT_TRUE(json["max_relative_error"].is_null());
  EXPECT_THAT(json["max_relative_error_reason"], HasSubstr("one length"));
}

}  // namespace context_test
}  // namespace gainlens::analyses
