#include "analyses/gate_arm_effects.h"

#include "core/random.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/math/distributions/students_t.hpp>

#include <cmath>
#include <map>
#include <string>
#include <vector>

namespace gainlens::analyses {
namespace gate_arm_effects_test {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr std::size_t documents = 30;
const std::vector<std::int64_t> contexts = {512, 1024, 2048, 4096};

/// Differences from native at each context, by arm. Documents scatter by `noise` about them.
using Planted = std::map<std::string, std::vector<double>>;

runfile::GateArmsRun planted_run(const Planted& planted, double noise = 0.002, bool gated = true) {
  runfile::GateArmsRun run;
  run.arms = {"native"};
  run.contexts = contexts;
  run.trained_length = 1024;
  run.gated = gated;
  run.calibration = {{0, 0, 0.9, 0.25, 2.0, 0.2500001, 1.0},
                     {0, 1, 0.7, 0.75, 8.0, 0.75, 1.0},
                     {1, 0, 0.8, 0.5, std::nullopt, std::nullopt, 1.0}};
  Random random(3);
  std::vector<double> level(documents);
  for (double& one : level) one = 4 + random.uniform();
  run.readings.resize(1);
  for (const double one : level)
    run.readings[0].emplace_back(contexts.size(), runfile::GateArmReading{one, 0.5, 0.1, 9});
  for (const auto& [name, deltas] : planted) {
    run.arms.push_back(name);
    auto& arm = run.readings.emplace_back();
    for (const double one : level) {
      auto& readings = arm.emplace_back();
      for (const double delta : deltas)
        readings.push_back({one + delta + noise * (random.uniform() - 0.5), 0.4, 0.2, 8});
    }
  }
  return run;
}

const Planted good = {{"constant", {0.02, 0.02, 0.02, 0.02}},
                      {"gain", {0.004, 0.002, -0.02, -0.04}},
                      {"permuted", {0.05, 0.05, 0.05, 0.05}}};

Planted with(const std::string& arm, const std::vector<double>& deltas) {
  Planted changed = good;
  changed[arm] = deltas;
  return changed;
}

PredictionRuling ruling_of(const Planted& planted, double noise = 0.002) {
  return gate_arm_effects(planted_run(planted, noise), 0).ruling;
}

TEST(GateArmEffects, RulesAsDeclared) {
  EXPECT_EQ(ruling_of(good), PredictionRuling::supported);
  // Worse at the trained length by more than the margin.
  EXPECT_EQ(ruling_of(with("gain", {0.03, 0.02, -0.02, -0.04})), PredictionRuling::contradicted);
  // Better than native there counts as not worse.
  EXPECT_EQ(ruling_of(with("gain", {-0.01, -0.02, -0.03, -0.05})), PredictionRuling::supported);
  // Worse at the longest context.
  EXPECT_EQ(ruling_of(with("gain", {0, 0, 0.01, 0.02})), PredictionRuling::contradicted);
  // A control does as well.
  EXPECT_EQ(ruling_of(with("permuted", {0.004, 0.002, -0.02, -0.04})), PredictionRuling::not_shown);
  EXPECT_EQ(ruling_of(with("constant", {-0.05, -0.05, -0.05, -0.05})), PredictionRuling::not_shown);
  // It gains everywhere alike: nothing grows with the context.
  EXPECT_EQ(ruling_of(with("gain", {-0.04, -0.04, -0.04, -0.04})), PredictionRuling::not_shown);
  // Too much noise for any statement.
  EXPECT_EQ(ruling_of(good, 2), PredictionRuling::not_shown);
}

/// One document of 30 whose change at a context is far above that of the others, or below.
runfile::GateArmsRun skewed_run(const Planted& planted, std::size_t context, double by) {
  runfile::GateArmsRun run = planted_run(planted);
  run.readings[2][0][context].nll += by;
  return run;
}

TEST(GateArmEffects, NothingIsRuledFromSkewedDocuments) {
  const GateArmEffects sound = gate_arm_effects(planted_run(good), 0);
  EXPECT_LT(std::abs(*sound.arms.at(2).contexts.at(1).to_native->skewness), 1);
  // The change at the trained length would be within the margin, and at the longest context gain would be better.
  for (const std::size_t context : {1u, 3u}) {
    const GateArmEffects effects = gate_arm_effects(skewed_run(good, context, 0.02), 0);
    EXPECT_EQ(effects.ruling, PredictionRuling::not_judged) << context;
    EXPECT_GT(*effects.arms.at(2).contexts.at(context).to_native->skewness, 4);
    EXPECT_THAT(effects.reasons, Contains(HasSubstr(fmt::format("gain - native at {} tokens: nothing is ruled from it, "
                                                                "for its documents are skewed (+",
                                                                contexts[context]))));
  }
  // Worse at the trained length by more than the margin, but for a tail downwards.
  const Planted worse = with("gain", {0.004, 0.02, -0.02, -0.04});
  EXPECT_EQ(gate_arm_effects(planted_run(worse), 0).ruling, PredictionRuling::contradicted);
  EXPECT_EQ(gate_arm_effects(skewed_run(worse, 1, -0.05), 0).ruling, PredictionRuling::not_judged);
  // What is sound contradicts without it.
  const Planted both = with("gain", {0, 0.02, 0.01, 0.02});
  EXPECT_EQ(gate_arm_effects(skewed_run(both, 1, -0.05), 0).ruling, PredictionRuling::contradicted);
  const OrderedJson json = to_json(gate_arm_effects(skewed_run(good, 3, 0.02), 0));
  EXPECT_EQ(json.at("ruling"), "not judged");
  EXPECT_GT(json.at("arms").at(2).at("contexts").at(3).at("skewness").get<double>(), 4);
  EXPECT_TRUE(json.at("arms").at(2).contains("slope_skewness"));
}

TEST(GateArmEffects, WithoutTheControlsNothingIsJudged) {
  Planted planted = good;
  planted.erase("permuted");
  EXPECT_EQ(ruling_of(planted), PredictionRuling::not_judged);
  const Planted alone = {{"one", {1, 1, 1, 1}}};
  const GateArmEffects effects = gate_arm_effects(planted_run(alone), 0);
  EXPECT_EQ(effects.ruling, PredictionRuling::not_judged);
  EXPECT_TRUE(effects.comparisons.empty());
  EXPECT_THAT(effects.reasons, Contains(HasSubstr("the prediction needs the arms")));
  runfile::GateArmsRun run = planted_run(good);
  run.trained_length = 4096;  // no longer context
  EXPECT_EQ(gate_arm_effects(run, 0).ruling, PredictionRuling::not_judged);
}

TEST(GateArmEffects, WithoutGatesTheModulatedArmIsJudged) {
  const Planted planted = {{"modulated", {0, 0, -0.02, -0.04}}, {"permuted", {0.05, 0.05, 0.05, 0.05}}};
  const GateArmEffects effects = gate_arm_effects(planted_run(planted, 0.002, false), 0);
  EXPECT_EQ(effects.judged, "modulated");
  EXPECT_EQ(effects.comparisons.size(), 2u);
  EXPECT_EQ(effects.ruling, PredictionRuling::supported);
}

TEST(GateArmEffects, FewDocumentsGiveNoIntervalOfASlope) {
  runfile::GateArmsRun run = planted_run(good);
  for (auto& arm : run.readings) arm.resize(29);
  const GateArmEffects effects = gate_arm_effects(run, 0);
  const ContextSlope slope = **effects.arms.at(2).slope;
  ASSERT_FALSE(slope.interval);
  EXPECT_EQ(slope.interval.reason(), "the interval of a slope needs 30 documents");
  EXPECT_EQ(effects.ruling, PredictionRuling::not_judged);
}

TEST(GateArmEffects, ReasonsNameDocuments) {
  runfile::GateArmsRun run = planted_run(good);
  const auto reason = [&] { return gate_arm_effects(run, 0).arms.at(2).contexts.at(0).to_native->interval.reason(); };
  for (auto& arm : run.readings) arm.resize(2, arm.front());
  for (auto& arm : run.readings) arm[1] = arm[0];
  EXPECT_EQ(reason(), "the difference is the same in every document");
  for (auto& arm : run.readings) arm.resize(1);
  EXPECT_EQ(reason(), "a test over documents needs at least 2");
}

/// Without noise every document has the same slope, which is that of the planted line.
TEST(GateArmEffects, SlopesAreOnTheLogarithm) {
  Planted planted = good;
  for (std::size_t i = 0; i < contexts.size(); ++i)
    planted["gain"][i] = 0.5 - 0.03 * std::log(static_cast<double>(contexts[i]));
  const GateArmEffects effects = gate_arm_effects(planted_run(planted, 0), 0);
  const ContextSlope slope = **effects.arms.at(2).slope;
  EXPECT_EQ(effects.arms.at(2).arm, "gain");
  EXPECT_NEAR(slope.value, -0.03, 1e-12);
  EXPECT_NEAR(slope.interval->low, -0.03, 1e-12);
  EXPECT_NEAR(slope.interval->high, -0.03, 1e-12);
}

TEST(GateArmEffects, TheIntervalOfASlopeIsThatOfItsDocuments) {
  const GateArmEffects effects = gate_arm_effects(planted_run(good, 0.1), 0);
  const ContextSlope slope = **effects.arms.at(2).slope;
  // A mean over documents: the deviation of one slope is noise sqrt(1/12) / sqrt(sum of squares of ln T).
  const double squares = 2 * (0.5 * 0.5 + 1.5 * 1.5) * std::log(2) * std::log(2);
  const double error = 0.1 * std::sqrt(1.0 / 12 / squares / documents);
  EXPECT_NEAR(slope.interval->high - slope.interval->low, 2 * 1.96 * error, 0.3 * 2 * 1.96 * error);
  EXPECT_LT(slope.interval->low, slope.value);
  EXPECT_GT(slope.interval->high, slope.value);
}

TEST(GateArmEffects, PowerFollowsFromTheDeviation) {
  const runfile::GateArmsRun run = planted_run(good, 0.1);
  std::vector<double> differences;
  for (std::size_t i = 0; i < documents; ++i)
    differences.push_back(run.readings[2][i][3].nll - run.readings[0][i][3].nll);
  double mean = 0, squares = 0;
  for (const double one : differences) mean += one / documents;
  for (const double one : differences) squares += (one - mean) * (one - mean);
  const double error = std::sqrt(squares / (documents - 1) / documents);
  const boost::math::students_t student(documents - 1);
  const ArmDifference found = *gate_arm_effects(run, 0).arms.at(2).contexts.at(3).to_native;
  EXPECT_NEAR(*found.detectable, (quantile(student, 0.975) + quantile(student, 0.8)) * error, 1e-12);
  EXPECT_NEAR(found.mean, mean, 1e-12);
  EXPECT_NEAR(found.interval->high - found.mean, quantile(student, 0.975) * error, 1e-12);
}

TEST(GateArmEffects, ComparisonsAreCorrectedTogether) {
  const GateArmEffects effects = gate_arm_effects(planted_run(good, 0.3), 0);
  ASSERT_EQ(effects.comparisons.size(), 3u);
  double least = 1;
  for (const GateArmComparison& one : effects.comparisons) {
    EXPECT_GE(*one.adjusted_p, *one.difference.p);
    least = std::min(least, *one.difference.p);
  }
  double least_adjusted = 1;
  for (const GateArmComparison& one : effects.comparisons) least_adjusted = std::min(least_adjusted, *one.adjusted_p);
  EXPECT_DOUBLE_EQ(least_adjusted, std::min(1.0, 3 * least));
}

TEST(GateArmEffects, SummariseTheCalibration) {
  const CalibrationSummary found = gate_arm_effects(planted_run(good), 0).calibration;
  EXPECT_EQ(found.heads, 3u);
  ASSERT_EQ(found.unsolved.size(), 1u);
  EXPECT_EQ(found.unsolved[0].layer, 1);
  EXPECT_EQ(found.lambda->low, 2);
  EXPECT_EQ(found.lambda->high, 8);
  EXPECT_EQ(*found.lambda_median, 5);
  EXPECT_NEAR(*found.largest_miss, 1e-7, 1e-12);
  EXPECT_NEAR(found.gate_mean, 0.5, 1e-12);
  EXPECT_NEAR(found.raw_mean, 0.8, 1e-12);
}

TEST(GateArmEffects, JsonHasTheRulingAndTheDeclaration) {
  const OrderedJson json = to_json(gate_arm_effects(planted_run(good), 0));
  EXPECT_EQ(json.at("ruling"), "supported");
  EXPECT_EQ(json.at("declared").at("margin"), 0.01);
  EXPECT_EQ(json.at("arms").at(0).at("arm"), "native");
  EXPECT_FALSE(json.at("arms").at(0).at("contexts").at(0).contains("delta"));
  EXPECT_NEAR(json.at("arms").at(2).at("contexts").at(3).at("delta").get<double>(), -0.04, 0.002);
  EXPECT_EQ(json.at("comparisons").size(), 3u);
  EXPECT_EQ(json.at("reasons").size(), 5u);
}

/// One document has no error, and nothing is ruled from it.
TEST(GateArmEffects, OfOneDocumentHaveReasons) {
  runfile::GateArmsRun run = planted_run(good);
  for (auto& arm : run.readings) arm.resize(1);
  const GateArmEffects effects = gate_arm_effects(run, 0);
  EXPECT_EQ(effects.ruling, PredictionRuling::not_judged);
  EXPECT_FALSE(effects.arms.at(2).contexts.at(0).to_native->interval);
  EXPECT_FALSE(to_json(effects).at("arms").at(2).at("contexts").at(0).at("interval_reason").empty());
}

}  // namespace gate_arm_effects_test
}  // namespace gainlens::analyses
