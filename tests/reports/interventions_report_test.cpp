#include "reports/interventions/interventions_report.h"

#include "support/file_bytes.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gainlens::reports {
namespace interventions_report_test {

using gainlens::testing::bytes_of;
using ::testing::HasSubstr;

analyses::InterventionEffects some_effects() {
  analyses::InterventionEffects effects{2, 3.25, {}};
  for (int head = 0; head < 4; ++head) {
    const std::string name = "blocks.0.attn.hook_z[head=" + std::to_string(head) + "]=zero";
    effects.arms.push_back(
        {{name, 3.5, 0.1 * head, analyses::Interval{-0.05 + 0.1 * head, 0.5}, 12, 0, 1.0, 2}, std::nullopt, "why"});
  }
  return effects;
}

TEST(InterventionsReport, HasTheTableAndTheMap) {
  const gainlens::testing::TemporaryFolder folder;
  const analyses::InterventionEffects effects = some_effects();
  const WrittenReport written = write_interventions_report(
      {&effects, "2 documents of 32 tokens", {.model = "tiny", .text = "wiki.txt"}}, folder.path() / "r");
  EXPECT_TRUE(written.left_out.empty());
  EXPECT_TRUE(written.failed.empty());
  const std::string page = bytes_of(folder.path() / "r" / "report.html");
  EXPECT_THAT(page, HasSubstr("<svg"));
  EXPECT_THAT(page, HasSubstr("4 interventions changed their site"));
  EXPECT_THAT(page, HasSubstr("<title>tiny on wiki.txt – gainlens</title>"));
  EXPECT_THAT(page, HasSubstr("each alone, in tiny on wiki.txt: 2 documents of 32 tokens."));
  EXPECT_THAT(page, HasSubstr("blocks.0.attn.hook_z[head=3]=zero"));
  EXPECT_THAT(bytes_of(folder.path() / "r" / "tables" / "interventions.csv"),
              HasSubstr("blocks.0.attn.hook_z[head=1]=zero,,3.5,0.1,"));
}

/// A figure shows which cells are doubtful: two of four here.
TEST(InterventionsReport, HatchesWhatIsNotSignificant) {
  analyses::InterventionEffects effects = some_effects();
  const auto figure = [&] {
    const auto maps = analyses::head_maps(effects);
    return effect_map_figure("m", maps, "q", "holds 0")->script;
  };
  EXPECT_THAT(figure(), HasSubstr("title 'holds 0'"));
  for (analyses::ControlledArm& one : effects.arms) one.arm.interval = analyses::Interval{0.1, 0.2};
  EXPECT_EQ(figure().find("title 'holds 0'"), std::string::npos);
  effects.arms.erase(effects.arms.begin() + 1, effects.arms.end());
  EXPECT_EQ(effect_map_figure("m", analyses::head_maps(effects), "q", "").reason(),
            "no two interventions are of single heads or positions of one site");
}

/// A page without a map has nothing to explore, and says so nowhere.
TEST(InterventionsReport, HasNothingToExploreWithoutAMap) {
  const gainlens::testing::TemporaryFolder folder;
  analyses::InterventionEffects effects = some_effects();
  const auto page = [&] {
    write_interventions_report({&effects, "2 documents"}, folder.path() / "r", {.style = {.formats = {"svg"}}});
    return bytes_of(folder.path() / "r" / "report.html");
  };
  EXPECT_THAT(page(), HasSubstr("<section id=\"explore-section\" class=\"scripted\" hidden>"));
  effects.arms.erase(effects.arms.begin() + 1, effects.arms.end());
  const std::string without = page();
  EXPECT_EQ(without.find("explore-section"), std::string::npos);
  EXPECT_EQ(without.find("<div data-part"), std::string::npos);
}

TEST(PatchingReport, HasAMapForEachDirection) {
  const gainlens::testing::TemporaryFolder folder;
  runfile::PatchingRun run;
  run.request = {{"clean", {{"texts", {"a", "b"}}}}, {"corrupt", {{"texts", {"a", "c"}}}}};
  for (std::int64_t position = 0; position < 2; ++position) {
    run.patches.push_back({"p" + std::to_string(position), "hook_resid_pre", 0, {}, position});
    for (runfile::PatchedPrompt& direction : run.directions)
      direction.effects.push_back({0.5, 1, 2, static_cast<double>(position)});
  }
  run.directions[0].other = run.directions[1].base = 1;
  const analyses::PatchingEffects effects = analyses::patching_effects(run);
  const WrittenReport written =
      write_patching_report({&effects, {.model = "tiny", .clean = "a <b>", .corrupt = "a c"}}, folder.path() / "r");
  EXPECT_TRUE(written.left_out.empty());
  EXPECT_TRUE(written.failed.empty());
  for (const char* name : {"patching-denoising", "patching-noising"})
    EXPECT_TRUE(std::filesystem::exists(folder.path() / "r" / (std::string(name) + ".svg"))) << name;
  const std::string page = bytes_of(folder.path() / "r" / "report.html");
  EXPECT_THAT(page, HasSubstr("<title>tiny on &#39;a &lt;b&gt;&#39; and &#39;a c&#39; – gainlens</title>"));
  EXPECT_THAT(page, HasSubstr("Activation patching in tiny between two prompts of 2 tokens"));
  // The tokens stand along the axis, both of them where they differ.
  const auto maps = analyses::patch_maps(effects, effects.directions.front());
  EXPECT_THAT(maps.front().labels, ::testing::ElementsAre("a", "b | c"));
  EXPECT_THAT(effect_map_figure("m", maps, "q", "")->script,
              HasSubstr("rotate by 90 right (\"a 0\" 0, \"b | c 1\" 1)"));
  EXPECT_THAT(bytes_of(folder.path() / "r" / "tables" / "patching.csv"),
              HasSubstr("noising,p1,hook_resid_pre,0,,1,b,c,"));
}

}  // namespace interventions_report_test
}  // namespace gainlens::reports
