
#include "analyses/synthetic_run.h"
#include "reports/terminal/sinks_terminal.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gainlens::reports {
namespace terminal_test {

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
      printed({});  // 8 layers of 2 KV groups: 256 permutations, the most extreme one and its mirror image
  EXPECT_THAT(text, HasSubstr("naive p  permutation p"));
  EXPECT_THAT(text, HasSubstr("blocks of a KV group: all 256 permutations, smallest possible p 7.8e-03"));
  EXPECT_THAT(text, HasSubstr("K shifted round the layers: all 8 permutations"));
  EXPECT_THAT(text, HasSubstr("not testable: with 8 permutations the smallest possible p is 0.12"));
  EXPECT_THAT(text, HasSubstr("it decides nothing: a common drift with depth looks like a relation to it"));
  EXPECT_THAT(text, HasSubstr("\n  range over 8 layers, without a level: Pearson ["));
  EXPECT_THAT(text, Not(HasSubstr("no head is a sink")));
  EXPECT_THAT(
      text,
      HasSubstr(
          "stretches of text: no interval: it takes at least 3 separate stretches of text, and the chunks of 4k"));
  EXPECT_THAT(text, HasSubstr(", block permutation)"));
  EXPECT_THAT(text, Not(HasSubstr("nan")));
}

TEST(SinkTerminal, StretchesOfTextAreCounted) {
  SyntheticRun run;
  run.nested = true;
  EXPECT_THAT(printed(run), HasSubstr("\n  95% interval over 3 stretches of text: Pearson ["));
}

TEST(SinkTerminal, AModelWithoutASinkIsSaidToDecideNothing) {
  SyntheticRun run;
  run.value = [](const gainlens::testing::CellKey& key) -> std::optional<double> {
    if (key.name == "summary/bos_mass") return 0.01 + 0.004 * static_cast<double>(key.layer);
    return std::nullopt;
  };
  EXPECT_THAT(printed(run), HasSubstr("no head is a sink: none of 32 heads has a BOS mass above 0.05, the largest is "
                                      "0.038; so this run decides nothing about sinks"));
}

TEST(SinkTerminal, TotalSinkMassStandsBesideBosMass) {
  EXPECT_THAT(printed({}), ::testing::AllOf(HasSubstr("\ntotal sink mass against "),
                                            HasSubstr("of all keys with a column mean of at least 0.3\n"),
                                            HasSubstr("is total sink mass related to it?")));
  SyntheticRun flat;
  flat.value = [](const gainlens::testing::CellKey& key) -> std::optional<double> {
    if (key.name != "sinks/column_mean") return std::nullopt;
    return gainlens::testing::planted({}, key) > 0 ? 0.2 : std::nan("");
  };
  EXPECT_THAT(printed(flat), ::testing::AllOf(HasSubstr("total sink mass: no key has a column mean of at least 0.3, so "
                                                        "there is nothing to correlate"),
                                              Not(HasSubstr("is total sink mass related"))));
  SyntheticRun older;
  older.version = 3;
  EXPECT_THAT(printed(older), HasSubstr("at least 0.3 (of keys 0 to 7, the only ones that this run stores)"));
}

TEST(SinkTerminal, DrawsAndSeedArePrinted) {
  SyntheticRun run;
  run.layers = 20;
  EXPECT_THAT(printed(run), HasSubstr("permutations (seed 6), smallest possible p"));
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
  EXPECT_THAT(text, HasSubstr("not testable: it takes at least 2 KV heads in a layer"));
  EXPECT_THAT(text, HasSubstr("K, last quarter                  not decidable"));
}

}  // namespace terminal_test
}  // namespace gainlens::reports
