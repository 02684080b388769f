#include "analyses/intervention_effects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gainlens::analyses {
namespace intervention_effects_test {

runfile::InterventionRun run_of(const std::vector<double>& native, const std::vector<double>& changed) {
  runfile::InterventionRun run;
  run.arms = {{"a", 1, ""}, {"b", std::nullopt, ""}};
  run.asked = 1;
  run.native = native;
  run.effects.resize(2);
  for (std::size_t i = 0; i < native.size(); ++i) {
    const auto number = static_cast<double>(i);
    run.effects[0].push_back({changed[i], 1 + number, 0, 1 + number});
    run.effects[1].push_back({native[i] + 0.5, 2, 1, 3});
  }
  return run;
}

TEST(InterventionEffects, AreMeansOverDocumentsWithAPairedInterval) {
  const InterventionEffects effects = intervention_effects(run_of({1, 5, 3}, {2, 6.5, 3.5}));
  EXPECT_EQ(effects.documents, 3u);
  EXPECT_EQ(effects.native_nll, 3);
  ASSERT_EQ(effects.arms.size(), 1u);  // the control alone is no arm
  const ArmEffect& arm = effects.arms[0].arm;
  EXPECT_EQ(arm.nll, 4);
  EXPECT_EQ(arm.delta, 1);
  EXPECT_EQ(arm.site_norm_before, 2);
  EXPECT_EQ(arm.largest_logit_change, 3);
  EXPECT_EQ(arm.documents_changed, 3u);
  // The differences 1, 1.5, 0.5 have the standard error 0.5 / sqrt(3); t of 2 degrees of freedom at 97.5% is 4.3027.
  ASSERT_TRUE(arm.interval);
  EXPECT_NEAR(arm.interval->high - 1, 4.3026527 * 0.5 / std::sqrt(3.0), 1e-6);
  EXPECT_NEAR(arm.interval->low + arm.interval->high, 2, 1e-12);
  ASSERT_TRUE(effects.arms[0].control);
  EXPECT_EQ(effects.arms[0].control->intervention, "b");
  EXPECT_EQ(effects.arms[0].control->delta, 0.5);
}

TEST(InterventionEffects, OfADeadUnitAreExactlyNothing) {
  runfile::InterventionRun run = run_of({0.1, 0.2, 0.3}, {0.1, 0.2, 0.3});
  for (InterventionEffect& effect : run.effects[0]) effect.largest_logit_change = 0;
  ArmEffect arm = intervention_effects(run).arms[0].arm;
  EXPECT_TRUE(arm.changes_nothing());
  EXPECT_EQ(arm.delta, 0);
  EXPECT_EQ(arm.interval.reason(), "the intervention changes nothing");
  EXPECT_EQ(to_json(intervention_effects(run)).at("arms").at(0).at("changes_nothing"), true);
  run.effects[0][1] = {0.4, 1, 0, 2};
  arm = intervention_effects(run).arms[0].arm;
  EXPECT_FALSE(arm.changes_nothing());
  EXPECT_EQ(arm.documents_changed, 1u);
}

TEST(InterventionEffects, HaveNoIntervalWithoutASpread) {
  EXPECT_EQ(intervention_effects(run_of({1}, {2})).arms[0].arm.interval.reason(),
            "an interval over documents needs at least 2");
  EXPECT_EQ(intervention_effects(run_of({1, 2}, {2, 3})).arms[0].arm.interval.reason(),
            "the difference is the same in every document, up to rounding");
}

TEST(InterventionEffects, AreWrittenForOtherPrograms) {
  runfile::InterventionRun run = run_of({1, 2}, {2, 3.5});
  run.arms[0].control.reset();
  run.arms[0].no_control = "why";
  const OrderedJson json = to_json(intervention_effects(run));
  EXPECT_EQ(json.at("native").dump(), R"({"nll":1.5})");
  EXPECT_EQ(json.at("documents"), 2);
  const OrderedJson& arm = json.at("arms").at(0);
  EXPECT_EQ(arm.at("intervention"), "a");
  EXPECT_EQ(arm.at("nll"), 2.75);
  EXPECT_EQ(arm.at("delta"), 1.25);
  EXPECT_EQ(arm.at("site_norm_before"), 1.5);
  EXPECT_EQ(arm.at("site_norm_after"), 0);
  EXPECT_EQ(arm.at("interval").size(), 2u);
  EXPECT_EQ(arm.at("control"), nullptr);
  EXPECT_EQ(arm.at("control_reason"), "why");
}

}  // namespace intervention_effects_test
}  // namespace gainlens::analyses
