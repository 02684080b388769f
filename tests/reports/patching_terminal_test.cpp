#include "reports/terminal/interventions_terminal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gainlens::reports {
namespace patching_terminal_test {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

analyses::PatchingEffects effects_of(std::int64_t positions) {
  runfile::PatchingRun run;
  run.request = {{"clean", {{"texts", Json::array()}}}, {"corrupt", {{"texts", Json::array()}}}};
  for (std::int64_t position = 0; position < positions; ++position) {
    for (const char* prompt : {"clean", "corrupt"})
      run.request[prompt]["texts"].push_back(position == 1 ? prompt : "same");
    run.patches.push_back({"blocks.0.hook_resid_pre[position=" + std::to_string(position) + "]=patch",
                           "hook_resid_pre",
                           0,
                           {},
                           position});
    const double metric = 1 + 0.01 * static_cast<double>(position);
    run.directions[0].effects.push_back({metric, 1, 2, position == 0 ? 0 : metric});
    run.directions[1].effects.push_back({metric, 1, 2, metric});
  }
  run.directions[0].base = run.directions[1].other = 1;
  run.directions[0].other = run.directions[1].base = 2;
  return analyses::patching_effects(run);
}

TEST(PatchingTerminal, BeginsWithWhatChangedAndDrawsMaps) {
  const std::string text = print_patching(effects_of(3), "no BOS");
  EXPECT_THAT(text,
              StartsWith("denoising 2 of 3 patches changed the logits of the last position (the least by 1.01)\n"));
  EXPECT_THAT(text, HasSubstr("3 tokens; they differ at position 1 clean | corrupt"));
  EXPECT_THAT(text, HasSubstr("clean +2.0000, corrupt +1.0000"));
  EXPECT_THAT(text, HasSubstr("hook_resid_pre by layer and position\n  layer       0       1       2\n"
                              "      0       .  +0.010  +0.020\n"));
}

TEST(PatchingTerminal, NamesTheStrongestOfAWideMap) {
  const std::string text = print_patching(effects_of(20), "");
  EXPECT_THAT(text, HasSubstr("hook_resid_pre by layer and position: the 10 strongest of 20\n"
                              "  blocks.0.hook_resid_pre[position=19]=patch   +0.190  metric +1.1900\n"));
  EXPECT_THAT(text.substr(0, text.find("\nnoising")), Not(HasSubstr("[position=5]")));
}

TEST(PatchingTerminal, TheTableHasARowForEachDirectionAndPatch) {
  const CsvTable table = patching_table(effects_of(3));
  ASSERT_EQ(table.rows.size(), 6u);
  EXPECT_EQ(table.header.size(), table.rows[0].size());
  EXPECT_THAT(to_csv(table),
              HasSubstr("denoising,blocks.0.hook_resid_pre[position=1]=patch,hook_resid_pre,0,,1,clean,corrupt,"));
}

}  // namespace patching_terminal_test
}  // namespace gainlens::reports
