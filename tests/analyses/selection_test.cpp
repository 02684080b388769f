#include "analyses/selection.h"

#include "analyses/cells.h"
#include "analyses/synthetic_run.h"
#include "runfile/query_windows.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace gainlens::analyses {
namespace selection_test {

using gainlens::testing::CellKey;
using gainlens::testing::SyntheticRun;
using gainlens::testing::TemporaryFolder;
using gainlens::testing::write_run;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::vector<std::int64_t> tokens(const std::vector<Length>& lengths) {
  std::vector<std::int64_t> result;
  for (const Length& length : lengths) result.push_back(length.tokens);
  return result;
}

SyntheticRun small_run() {
  SyntheticRun run;
  run.lengths = {16, 32};
  run.samples = 2;
  run.layers = 2;
  run.heads = 2;
  run.kv_heads = 1;
  return run;
}

TEST(Selection, WindowsStartAtTheCeiling) {
  EXPECT_EQ(runfile::last_quarter_begin(8), 6);
  EXPECT_EQ(runfile::last_quarter_begin(10), 8);  // ceil(7.5)
  EXPECT_EQ(runfile::second_half_begin(8), 4);
  EXPECT_EQ(runfile::second_half_begin(9), 5);
}

TEST(Selection, WindowOfFourHidesKeyZeroFromQueriesFourOn) {
  EXPECT_EQ(first_key_visibility("global", 100), FirstKey::seen);
  EXPECT_EQ(first_key_visibility("window:4", 8), FirstKey::hidden);         // queries 4..7 see keys from 1 on
  EXPECT_EQ(first_key_visibility("window:5", 8), FirstKey::partly_hidden);  // query 4 still sees key 0
  EXPECT_EQ(first_key_visibility("window:8", 8), FirstKey::seen);
  EXPECT_THAT([] { first_key_visibility("window:x", 8); }, ThrowsMessage<InvalidArgument>(HasSubstr("'window:x'")));
}

TEST(Selection, SinkLengthsAreTheTwoLongest) {
  const TemporaryFolder folder;
  SyntheticRun run = small_run();
  run.lengths = {1024, 4096, 8192, 10240};
  const auto reader = write_run(folder.path() / "paper", run);
  EXPECT_THAT(tokens(sink_lengths(reader, {})), ElementsAre(8192, 10240));
  EXPECT_THAT(tokens(sink_lengths(reader, {.at = {10240, 1024, 1024}})), ElementsAre(1024, 10240));
  EXPECT_THAT([&] { sink_lengths(reader, {.at = {512}}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("512 tokens; it has 1k, 4k, 8k and 10k")));

  run.lengths = {16, 32, 64};
  EXPECT_THAT(tokens(sink_lengths(write_run(folder.path() / "short", run), {})), ElementsAre(32, 64));
  run.lengths = {16};
  EXPECT_THAT(tokens(sink_lengths(write_run(folder.path() / "one", run), {})), ElementsAre(16));
}

TEST(Selection, TheRuleOfTheSinkLengthsSaysHowToChangeThem) {
  const TemporaryFolder folder;
  SyntheticRun run = small_run();
  const auto rule = [&](const char* name, const Options& options) {
    return sink_lengths_rule(write_run(folder.path() / name, run), options);
  };
  run.lengths = {1024, 4096, 8192};
  EXPECT_EQ(rule("three", {}), "the two longest; change with --at");
  EXPECT_EQ(rule("given", {.at = {1024}}), "given with --at");
  run.lengths = {16};
  EXPECT_EQ(rule("one", {}), "the only length");
}

TEST(Selection, DeepLayersAreTheLastQuarterRoundedUp) {
  const TemporaryFolder folder;
  SyntheticRun run = small_run();
  run.layers = 5;
  const auto reader = write_run(folder.path() / "run", run);
  EXPECT_THAT(deep_layers(reader, {}), ElementsAre(3, 4));
  EXPECT_THAT(deep_layers(reader, {.deep_layers = 1}), ElementsAre(4));
  for (const std::int64_t wrong : {0, 6}) {
    EXPECT_THAT([&] { deep_layers(reader, {.deep_layers = wrong}); },
                ThrowsMessage<InvalidArgument>(HasSubstr("1 to 5 are allowed")));
  }
}

TEST(Selection, LengthWithoutACompleteChunkIsNotUsable) {
  const TemporaryFolder folder;
  SyntheticRun run = small_run();
  run.missing = {{16, 1}, {32, 0}, {32, 1}};
  const auto reader = write_run(folder.path() / "run", run);
  const std::vector<Length> usable = usable_lengths(reader);
  ASSERT_EQ(usable.size(), 1u);
  EXPECT_EQ(usable[0].tokens, 16);
  EXPECT_EQ(usable[0].missing, 1);
  EXPECT_THAT(usable[0].samples, ElementsAre(0));
}

TEST(Aggregate, VarianceFollowsTheLawOfTotalVariance) {
  // cell means 1, 3 in chunk 0 and 5, 7 in chunk 1; cell variances all 2: total 2 + ((9 + 1 + 1 + 9) / 4 = 5) = 7
  const TemporaryFolder folder;
  SyntheticRun run = small_run();
  run.value = [](const CellKey& key) -> std::optional<double> {
    if (key.name == "summary/n_eff")
      return 1.0 + 2.0 * static_cast<double>(key.head) + 4.0 * static_cast<double>(key.sample);
    if (key.name == "summary/n_eff_var") return 2.0;
    return std::nullopt;
  };
  const auto reader = write_run(folder.path() / "run", run);
  const auto result = aggregate(reader, "n_eff", usable_lengths(reader)[0], {1});
  ASSERT_TRUE(result);
  EXPECT_DOUBLE_EQ(result->mean, 4);
  EXPECT_DOUBLE_EQ(*result->deviation, std::sqrt(7.0));
  EXPECT_THAT(result->chunk_means, ElementsAre(2, 6));
  EXPECT_NEAR(result->interval->high, 4 + 2 * 12.706205, 1e-5);  // standard error 2, t(0.975, 1)
}

TEST(Aggregate, CellsWithoutAValueAreLeftOutAndCounted) {
  const TemporaryFolder folder;
  SyntheticRun run = small_run();
  run.value = [](const CellKey& key) -> std::optional<double> {
    if (!key.name.starts_with("summary/n_eff")) return std::nullopt;
    return key.head == 0 ? std::numeric_limits<double>::quiet_NaN() : 5.0;
  };
  const auto reader = write_run(folder.path() / "run", run);
  const auto result = aggregate(reader, "n_eff", usable_lengths(reader)[0], {0, 1});
  EXPECT_DOUBLE_EQ(result->mean, 5);
  EXPECT_EQ(result->left_out, 4u);  // 2 chunks x 2 layers x head 0
}

TEST(Aggregate, TheMeanIsWhatTheIntervalIsOf) {
  // Chunk 0 has one cell of 1, chunk 1 two cells of 4. The mean of the chunks is 2.5, the mean of the three cells 3.
  const TemporaryFolder folder;
  SyntheticRun run = small_run();
  run.value = [](const CellKey& key) -> std::optional<double> {
    if (key.name != "summary/n_eff") return std::nullopt;
    if (key.sample == 1) return 4.0;
    return key.head == 0 ? 1.0 : std::numeric_limits<double>::quiet_NaN();
  };
  const auto reader = write_run(folder.path() / "run", run);
  const auto result = aggregate(reader, "n_eff", usable_lengths(reader)[0], {1});
  EXPECT_DOUBLE_EQ(result->mean, 2.5);
  EXPECT_DOUBLE_EQ((result->interval->low + result->interval->high) / 2, 2.5);
}

TEST(Aggregate, AbsentStatisticIsNamed) {
  const TemporaryFolder folder;
  SyntheticRun run = small_run();
  run.gated = false;
  const auto reader = write_run(folder.path() / "run", run);
  EXPECT_EQ(aggregate(reader, "gate", usable_lengths(reader)[0], {0}).reason(), "the model has no attention gate");
}

}  // namespace selection_test
}  // namespace gainlens::analyses
