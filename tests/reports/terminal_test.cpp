#include "reports/terminal.h"

#include "analyses/synthetic_run.h"
#include "reports/results.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gainlens::reports {
namespace {

using gainlens::testing::SyntheticRun;
using gainlens::testing::TemporaryFolder;
using gainlens::testing::write_run;
using ::testing::HasSubstr;
using ::testing::Not;

std::string printed(const SyntheticRun& run) {
  const TemporaryFolder folder;
  return print_sink_vs_k(analyses::sink_vs_k(write_run(folder.path() / "run", run), {.resampling = {.seed = 6}}));
}

TEST(SinkTerminal, PermutationPStandsBesideTheNaiveOne) {
  const std::string text =
      printed({});  // 8 layers of 2 KV groups: 256 arrangements, the most extreme one and its mirror image
  EXPECT_THAT(text, HasSubstr("naive p  permutation p"));
  EXPECT_THAT(text, HasSubstr("blocks of a KV group: 256 arrangements, all tried, least attainable p 7.8e-03"));
  EXPECT_THAT(text, HasSubstr("K shifted round the layers: 8 arrangements"));
  EXPECT_THAT(text, HasSubstr("refused: with 8 arrangements no p below 0.12 can be reached"));
  EXPECT_THAT(
      text, HasSubstr("layers: refused: layers with global attention: 8; at least 10 are needed to leave out layers"));
  EXPECT_THAT(
      text, HasSubstr("stretches of text: refused: the chunks of 4k tokens lie in 2 stretches of text that are apart"));
  EXPECT_THAT(text, HasSubstr(", block permutation)"));
  EXPECT_THAT(text, Not(HasSubstr("nan")));
}

TEST(SinkTerminal, StretchesOfTextAreCounted) {
  SyntheticRun run;
  run.nested = true;
  EXPECT_THAT(printed(run), HasSubstr("\n  3 stretches of text: Pearson ["));
}

TEST(SinkTerminal, DrawsAndSeedArePrinted) {
  SyntheticRun run;
  run.layers = 20;
  EXPECT_THAT(printed(run), HasSubstr("9999 drawn (seed 6)"));
}

TEST(SinkTerminal, KindsAreRowsOnlyWhereTheyDiffer) {
  SyntheticRun run;
  EXPECT_THAT(printed(run), Not(HasSubstr("\n  global")));
  run.attention = {"window:512", "global", "global", "global", "global", "global", "global", "global"};
  EXPECT_THAT(printed(run), HasSubstr("\n  global"));
}

TEST(SinkTerminal, OneHeadIsNotDecidable) {
  SyntheticRun run;
  run.layers = run.heads = run.kv_heads = 1;
  const std::string text = printed(run);
  EXPECT_THAT(text, HasSubstr("1 arrangement, as no layer has two KV groups"));
  EXPECT_THAT(text, HasSubstr("K, last quarter                not decidable"));
}

}  // namespace
}  // namespace gainlens::reports
