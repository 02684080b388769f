#include "analyses/patching_effects.h"

#include "core/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gainlens::analyses {
namespace patching_effects_test {

runfile::PatchingRun run_of(double clean, double corrupt) {
  runfile::PatchingRun run;
  run.request = {{"clean", {{"texts", {"a", "b"}}}}, {"corrupt", {{"texts", {"a", "c"}}}}};
  for (std::int64_t layer = 0; layer < 2; ++layer) {
    run.patches.push_back({"z", "attn.hook_z", layer, 1, {}});
    run.patches.push_back({"r0", "hook_resid_pre", layer, {}, 0});
    run.patches.push_back({"r1", "hook_resid_pre", layer, {}, 1});
  }
  run.patches.push_back({"joint"});
  run.directions[0] = {corrupt, clean, std::vector<runfile::PatchEffect>(7, {1.5, 1, 2, 3})};
  run.directions[1] = {clean, corrupt, std::vector<runfile::PatchEffect>(7, {clean, 1, 1, 0})};
  return run;
}

TEST(PatchingEffects, AreNormalisedFromTheRunThatIsPatchedToTheOther) {
  const PatchingEffects effects = patching_effects(run_of(4, 1));
  EXPECT_EQ(effects.metric, "kl_to_clean");
  EXPECT_EQ(effects.clean_metric(), 4);
  EXPECT_EQ(effects.corrupt_metric(), 1);
  EXPECT_NEAR(*effects.directions[0].patches[0].normalised, 0.5 / 3, 1e-15);
  EXPECT_EQ(*effects.directions[1].patches[0].normalised, 0);
  EXPECT_TRUE(effects.directions[1].patches[0].changes_nothing());
  const PatchingEffects same = patching_effects(run_of(2, 2));
  EXPECT_EQ(same.directions[0].patches[0].normalised.reason(), "both runs have the same metric");
}

TEST(PatchingEffects, AreMapsByPositionAndByHead) {
  const PatchingEffects effects = patching_effects(run_of(4, 1));
  ASSERT_EQ(effects.grids.size(), 2u);
  const PatchGrid& positions = effects.grids[0];
  EXPECT_EQ(positions.site, "hook_resid_pre");
  EXPECT_FALSE(positions.heads);
  EXPECT_EQ(positions.columns, 2);
  EXPECT_EQ(positions.at(1, 0), 4u);
  EXPECT_EQ(effects.grids[1].at(0, 0), std::nullopt);
  EXPECT_EQ(effects.grids[1].at(1, 1), 3u);
}

TEST(PatchingEffects, AreWrittenForOtherPrograms) {
  runfile::PatchingRun run = run_of(4, 1);
  run.request["answer"] = {{"texts", {"' x'", "' y'"}}};
  const OrderedJson json = to_json(patching_effects(run));
  EXPECT_EQ(json.at("metric"), "logit_difference");
  EXPECT_EQ(json.at("answer"), "' x'");
  EXPECT_EQ(json.at("clean").at("metric"), 4);
  EXPECT_EQ(json.at("corrupt").at("tokens").at(1), "c");
  const OrderedJson& patch = json.at("denoising").at("patches").at(2);
  EXPECT_EQ(patch.at("intervention"), "r1");
  EXPECT_EQ(patch.at("metric"), 1.5);
  EXPECT_EQ(patch.at("changes_nothing"), false);
  EXPECT_EQ(json.at("noising").at("other"), 1);
}

TEST(PatchingEffects, OfARequestWithoutPromptsAreRefused) {
  runfile::PatchingRun run = run_of(4, 1);
  run.request.erase("corrupt");
  EXPECT_THROW(patching_effects(run), InvalidArgument);
}

}  // namespace patching_effects_test
}  // namespace gainlens::analyses
