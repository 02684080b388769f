#include "analyses/sensitivity.h"
#include "analyses/paper_gains.h"

#include "analyses/gain_decisions.h"
#include "analyses/made_sensitivity.h"
#include "analyses/recommender_comparison.h"
#include "support/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gainlens::analyses {
namespace sensitivity_test {

using gainlens::testing::made_sensitivity_run;
using gainlens::testing::MadeSensitivity;
using gainlens::testing::refusal_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Sensitivity read(runfile::RecommendRun run, const SensitivityOptions& options = {}) {
  return sensitivity("run", std::make_shared<const runfile::RecommendRun>(std::move(run)), options);
}

std::vector<std::string> texts(const KnobResult& knob) {
  std::vector<std::string> found;
  for (const SettingResult& setting : knob.settings) found.push_back(setting.text);
  return found;
}

TEST(Sensitivity, KnobsStandInThePapersOrderAndSettingsByTheirValue) {
  const Sensitivity found = read(made_sensitivity_run({.settings = {{"warm_up", 200},
                                                                    {"dropout", 0.2},
                                                                    {"warm_up", 0},
                                                                    {"prior_variance", 0.01},
                                                                    {"prior_variance", 1.0},
                                                                    {"initial_gain", 0.95},
                                                                    {"initial_gain", 0.5},
                                                                    {"estimator", "kish"}}}));
  std::vector<std::string> keys;
  for (const KnobResult& knob : found.knobs) keys.push_back(knob.key);
  EXPECT_THAT(keys, ElementsAre("initial_gain", "prior_variance", "warm_up", "dropout", "estimator"));
  EXPECT_THAT(texts(found.knobs[0]), ElementsAre("0.5", "0.95"));
  EXPECT_EQ(found.knobs[0].reference_text, "0.9");
  // 0 is 1/d, and d is 32.
  EXPECT_EQ(found.knobs[1].reference_text, "1/d");
  EXPECT_EQ(*found.knobs[1].reference_place, 1.0 / 32);
  EXPECT_THAT(texts(found.knobs[2]), ElementsAre("0", "200"));
  EXPECT_EQ(found.knobs[4].settings[0].text, "kish");
  EXPECT_FALSE(found.knobs[4].settings[0].place);
}

TEST(Sensitivity, IsTheInferenceOfACompare) {
  const auto run = std::make_shared<const runfile::RecommendRun>(
      made_sensitivity_run({.settings = {{"initial_gain", 0.5, 0.03}, {"warm_up", 0, -0.2}}}));
  const Sensitivity found = sensitivity("run", run, {});
  for (std::size_t arm = 1; arm < 3; ++arm) {
    const SettingResult& setting = found.knobs[arm - 1].settings[0];
    RecommenderOptions options;
    options.metrics = {{RankingMetric::Kind::hit, 10}};
    const ArmComparison compared = compare_arms({{"run", run, 0, "a"}, {"run", run, arm, "b"}}, options);
    const MetricGain& gain = compared.metrics[0];
    EXPECT_EQ(setting.arm, run->arms[arm]);
    EXPECT_EQ(setting.change->value, gain.log_ratio->value);
    EXPECT_EQ(*setting.p, *gain.log_ratio->p);
    EXPECT_EQ(setting.change->interval->low, gain.log_ratio->interval->low);
    EXPECT_EQ(setting.summary.mean, gain.seeds.candidate.mean);
    EXPECT_EQ(*setting.summary.deviation, *gain.seeds.candidate.deviation);
    EXPECT_EQ(found.reference.mean, gain.seeds.baseline.mean);
    EXPECT_NEAR(found.reference.mean * std::exp(setting.change->value), setting.summary.mean, 1e-12);
  }
  EXPECT_GT(found.knobs[0].settings[0].change->value, 0);
  EXPECT_LT(found.knobs[1].settings[0].change->value, 0);
}

TEST(Sensitivity, HolmCountsAllSettingsOfAllKnobs) {
  const Sensitivity found = read(made_sensitivity_run(
      {.settings = {{"initial_gain", 0.5, 0.05}, {"initial_gain", 0.7}, {"warm_up", 0}, {"warm_up", 100, 0, 0}}}));
  const SettingResult& least = found.knobs[0].settings[0];
  // The fourth setting has no p: its ranks are those of the reference.
  EXPECT_EQ(*least.holm, 3 * *least.p);
  EXPECT_FALSE(found.knobs[1].settings[1].p);
  EXPECT_TRUE(found.knobs[1].settings[1].same_ranks);
}

TEST(Sensitivity, AKnobDiffersIfOneSettingDoesAfterHolm) {
  const Sensitivity found =
      read(made_sensitivity_run({.settings = {{"initial_gain", 0.5, -0.3}, {"initial_gain", 0.7}, {"warm_up", 0}}}));
  EXPECT_EQ(found.knobs[0].answer, KnobAnswer::differs);
  EXPECT_THAT(found.knobs[0].in_words(found.margin), StartsWith("differs: worse at 0.5 (-"));
  EXPECT_EQ(found.knobs[1].answer, KnobAnswer::open);
}

TEST(Sensitivity, WhatIsNotSignificantIsNotFlat) {
  const Sensitivity found = read(made_sensitivity_run({.settings = {{"initial_gain", 0.5}}, .users = 200}));
  const SettingResult& setting = found.knobs[0].settings[0];
  ASSERT_GT(*setting.p, decision_level);
  EXPECT_EQ(found.knobs[0].answer, KnobAnswer::open);
  EXPECT_GT(*setting.reach(), found.margin);
  EXPECT_THAT(found.knobs[0].in_words(found.margin), StartsWith("not decided: flat only within ±"));
}

TEST(Sensitivity, AKnobIsFlatIfEverySettingLiesWithinTheMargin) {
  const auto run = made_sensitivity_run({.settings = {{"initial_gain", 0.5}, {"initial_gain", 0.7}}});
  const double reach = [&] {
    const Sensitivity found = read(run);
    return std::max(*found.knobs[0].settings[0].reach(), *found.knobs[0].settings[1].reach());
  }();
  const KnobResult flat = read(run, {.margin = reach * 1.001}).knobs[0],
                   open = read(run, {.margin = reach * 0.999}).knobs[0];
  EXPECT_EQ(flat.answer, KnobAnswer::flat);
  EXPECT_LE(*flat.flat_p, 0.05);
  EXPECT_EQ(*flat.flat_holm, *flat.flat_p);  // one knob
  EXPECT_THAT(flat.in_words(0.05), StartsWith("flat within ±5%"));
  EXPECT_EQ(open.answer, KnobAnswer::open);
  EXPECT_GT(*open.flat_p, 0.05);
}

TEST(Sensitivity, ADifferenceWithinTheMarginIsToldBesideFlatness) {
  const KnobResult knob =
      read(made_sensitivity_run({.settings = {{"initial_gain", 0.5, 0.01, 0.001}}}), {.margin = 0.4}).knobs[0];
  EXPECT_EQ(knob.answer, KnobAnswer::flat);
  EXPECT_TRUE(knob.settings[0].differs());
  EXPECT_THAT(knob.in_words(0.4), HasSubstr("; within it a difference at 0.5 (+"));
}

TEST(Sensitivity, TheSameRanksAreFlatWithoutATest) {
  const Sensitivity found = read(made_sensitivity_run({.settings = {{"most_precision", 200.0, 0, 0}}}));
  const KnobResult& knob = found.knobs[0];
  EXPECT_EQ(knob.answer, KnobAnswer::flat);
  EXPECT_EQ(knob.in_words(0.01), "flat within ±1%: no setting changes a rank");
  EXPECT_EQ(*knob.settings[0].reach(), 0);
  EXPECT_FALSE(knob.flat_p);
}

TEST(Sensitivity, TheSameHitsWithOtherRanksAreNoEvidence) {
  runfile::RecommendRun run = made_sensitivity_run({.settings = {{"most_precision", 200.0, 0, 0}}});
  for (std::size_t i = 5; i < 10; ++i)
    for (double& rank : run.results[i]->scores.at("rank")) rank = rank > 10 ? 60 : rank;
  const KnobResult knob = read(std::move(run)).knobs[0];
  EXPECT_FALSE(knob.settings[0].same_ranks);
  EXPECT_EQ(knob.answer, KnobAnswer::open);
  EXPECT_THAT(knob.in_words(0.01), StartsWith("not decided: 200: the difference is the same"));
}

TEST(Sensitivity, TwoSeedsDecideNothing) {
  const Sensitivity found = read(made_sensitivity_run({.settings = {{"initial_gain", 0.5, -0.5}}, .seeds = 2}));
  EXPECT_EQ(found.knobs[0].answer, KnobAnswer::open);
  EXPECT_THAT(found.knobs[0].in_words(0.01), HasSubstr("not decided: 0.5: 2 seeds give a range without a level"));
  EXPECT_FALSE(found.median_half_width());
}

TEST(Sensitivity, SettingsArePairedOverTheSeedsThatBothHave) {
  runfile::RecommendRun run = made_sensitivity_run({.settings = {{"initial_gain", 0.5}, {"warm_up", 0}}});
  run.results[5 + 4].reset();
  for (std::size_t i = 10; i < 15; ++i) run.results[i].reset();
  const Sensitivity found = read(std::move(run));
  EXPECT_THAT(found.seeds, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(found.knobs[0].settings[0].seeds, ElementsAre(0, 1, 2, 3));
  ASSERT_EQ(found.left_out.size(), 1u);
  EXPECT_EQ(found.left_out[0].arm, "bft/warm_up-0");
  EXPECT_THAT(found.left_out[0].reason, HasSubstr("no finished seed in common"));
}

TEST(Sensitivity, VariantsOfSeveralSettingsAreLeftOutWithTheReason) {
  runfile::RecommendRun run =
      made_sensitivity_run({.settings = {{"initial_gain", 0.5}, {"warm_up", 0, 0, 0.02, "both"}, {"depth", 3}}});
  run.request["variants"]["both"]["most_precision"] = 20.0;
  run.request["variants"]["initial_gain-0.5"]["warm_up"] = 50;  // the reference's own
  const Sensitivity found = read(std::move(run));
  EXPECT_EQ(found.knobs.size(), 1u);
  ASSERT_EQ(found.left_out.size(), 2u);
  EXPECT_EQ(found.left_out[0].reason, "it changes 2 settings: most_precision, warm_up");
  EXPECT_EQ(found.left_out[1].reason, "the run does not store its own setting 'depth'");
}

TEST(Sensitivity, WhatCannotBeReadIsRefused) {
  const MadeSensitivity made{.settings = {{"initial_gain", 0.5}}};
  const auto refusal = [](runfile::RecommendRun run, const SensitivityOptions& options = {}) {
    return refusal_of([&] { read(std::move(run), options); });
  };
  EXPECT_THAT(refusal(made_sensitivity_run({})), HasSubstr("run: has no variants of any arm; train them with"));
  EXPECT_THAT(refusal(made_sensitivity_run(made), {.arm = "btf"}),
              HasSubstr("--arm: run has no arm 'btf', but bft; did you mean 'bft'"));
  EXPECT_THAT(refusal(made_sensitivity_run(made), {.margin = 0}), HasSubstr("--margin: 0%; must be above 0"));
  EXPECT_THAT(refusal(made_sensitivity_run(made), {.margin = 1}), HasSubstr("--margin: 100%"));
  EXPECT_THAT(refusal(made_sensitivity_run(made), {.margin = NAN}), HasSubstr("--margin"));
  runfile::RecommendRun alone = made_sensitivity_run(made);
  for (std::size_t i = 0; i < 5; ++i) alone.results[i].reset();
  EXPECT_THAT(refusal(std::move(alone)), HasSubstr("has no finished seed of arm bft without a variant, the reference"));
  runfile::RecommendRun plain = made_sensitivity_run(made);
  plain.arms.emplace_back("plain");
  for (std::size_t i = 0; i < 5; ++i) plain.results.push_back(plain.results[i]);
  EXPECT_THAT(refusal(plain, {.arm = "plain"}), HasSubstr("--arm: run has no variants of arm plain"));
  plain.arms.back() = "gate/initial_gain-0.5";
  EXPECT_THAT(refusal(std::move(plain)), HasSubstr("the arms bft, gate have variants; name one with --arm"));
  for (const Json& variants : {Json("none"), Json::object(), Json{{"initial_gain-0.5", 3}}}) {
    runfile::RecommendRun broken = made_sensitivity_run(made);
    broken.request["variants"] = variants;
    EXPECT_THAT(refusal(std::move(broken)), HasSubstr("does not say what variant 'initial_gain-0.5' changes"));
  }
  runfile::RecommendRun both = made_sensitivity_run(made);
  both.request["variants"]["initial_gain-0.5"]["warm_up"] = 0;
  EXPECT_THAT(refusal(std::move(both)),
              HasSubstr("no variant of arm bft can be compared with the reference (bft/init"));
}

TEST(Sensitivity, IsWrittenAsJson) {
  const OrderedJson json =
      to_json(read(made_sensitivity_run({.settings = {{"initial_gain", 0.5, -0.3}, {"warm_up", 100, 0, 0}}})));
  EXPECT_EQ(json.at("margin"), 0.01);
  const OrderedJson& knob = json.at("knobs").at(0);
  EXPECT_EQ(knob.at("answer"), "differs");
  EXPECT_EQ(knob.at("reference"), 0.9);
  EXPECT_THAT(knob.at("paper").get<std::string>(), HasSubstr("zero measurable effect"));
  const OrderedJson& setting = knob.at("settings").at(0);
  EXPECT_EQ(setting.at("value"), 0.5);
  EXPECT_LT(setting.at("change"), 0);
  EXPECT_LE(setting.at("interval_95").at(0), setting.at("change"));
  EXPECT_EQ(setting.at("log_ratio").at("seeds"), 5);
  const OrderedJson& same = json.at("knobs").at(1).at("settings").at(0);
  EXPECT_EQ(same.at("same_ranks"), true);
  EXPECT_TRUE(same.at("p").is_null());
  EXPECT_EQ(same.at("least_margin"), 0.0);
}

TEST(PaperKnobs, AreSevenWithNamesOfTheirOwn) {
  EXPECT_EQ(paper_knobs().size(), 7u);
  std::set<std::string_view> keys;
  for (const PaperKnob& knob : paper_knobs()) {
    keys.insert(knob.key);
    EXPECT_EQ(find_paper_knob(knob.key), &knob);
  }
  EXPECT_EQ(keys.size(), 7u);
  EXPECT_EQ(find_paper_knob("dropout"), nullptr);
}

}  // namespace sensitivity_test
}  // namespace gainlens::analyses
