#include "analyses/planted_verdicts.h"
#include "analyses/synthetic_run.h"
#include "analyses/verdicts.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <vector>

namespace gainlens::analyses {
namespace sink_verdict_test {

using gainlens::testing::CellKey;
using gainlens::testing::SyntheticRun;
using gainlens::testing::TemporaryFolder;
using gainlens::testing::write_run;
using ::testing::HasSubstr;

TEST(SinkVerdict, SinkPredictionNeedsItsControl) {
  const Verdicts both = verdicts_of(run_to_judge({}));
  EXPECT_EQ(sink(both).ruling, Ruling::supported) << sink(both).reason;
  EXPECT_THAT(sink(both).claims[0].decisive, HasSubstr("block permutation: p = 0.0001"));
  const Verdicts coupled = verdicts_of(run_to_judge({.without_first_slope = -1}));
  EXPECT_EQ(sink(coupled).ruling, Ruling::not_shown);
  EXPECT_THAT(sink(coupled).reason, HasSubstr("but arithmetic alone can cause this; K without key 0: negative"));
  const Verdicts falls = verdicts_of(run_to_judge({.gain_slope = -1, .without_first_slope = -1, .scaled_slope = -1}));
  EXPECT_EQ(sink(falls).ruling, Ruling::contradicted) << sink(falls).reason;
  EXPECT_THAT(sink(falls).reason, HasSubstr("heads with more BOS mass have the smaller K, and K without key 0"));
  for (const double slope : {0.0, 1.0}) {  // arithmetic alone can also make K fall, so the control must fall too
    const Verdicts alone =
        verdicts_of(run_to_judge({.gain_slope = -1, .without_first_slope = slope, .scaled_slope = -1}));
    EXPECT_EQ(sink(alone).ruling, Ruling::not_shown);
    EXPECT_THAT(sink(alone).reason, HasSubstr("smaller K, but arithmetic alone can cause this; K without key 0: "));
  }
}

TEST(SinkVerdict, ASignThatHangsOnTheScaleOfTheValuesIsNotShown) {
  const Verdicts rises = verdicts_of(run_to_judge({.scaled_slope = -1}));
  EXPECT_EQ(sink(rises).ruling, Ruling::not_shown);
  EXPECT_THAT(sink(rises).reason,
              HasSubstr("larger K, but the sign depends on the scale of the values; scaled K: negative"));
  const Verdicts falls = verdicts_of(run_to_judge({.gain_slope = -1, .without_first_slope = -1}));
  EXPECT_EQ(sink(falls).ruling, Ruling::not_shown);
  EXPECT_THAT(sink(falls).reason,
              HasSubstr("smaller K, but the sign depends on the scale of the values; scaled K: positive"));
  // A scaled K that shows nothing does not contradict the two others that do. Its decision is printed in any case.
  const Verdicts silent = verdicts_of(run_to_judge({.scaled_slope = 0}));
  EXPECT_EQ(sink(silent).ruling, Ruling::supported) << sink(silent).reason;
  EXPECT_THAT(sink(silent).claims[0].decisive, HasSubstr("; scaled K: not decidable"));
}

TEST(SinkVerdict, NoRelationIsNotShownWithItsP) {
  SyntheticRun run = run_to_judge({});
  const auto planted_value = run.value;
  run.value = [planted_value](const CellKey& key) -> std::optional<double> {
    if (key.name == "summary/kalman_gain")
      return 0.6 + 0.05 * std::sin(static_cast<double>(5 * key.layer + 3 * key.head * key.head));
    return planted_value(key);
  };
  const Verdicts found = verdicts_of(run);
  EXPECT_EQ(sink(found).ruling, Ruling::not_shown);
  EXPECT_THAT(sink(found).reason, HasSubstr("the block permutation does not show a relation (p = 0."));
}

TEST(SinkVerdict, OneKvHeadAndFewLayersDecideNothing) {
  SyntheticRun run = run_to_judge({});
  run.kv_heads = 1;
  const Verdicts found = verdicts_of(run);
  EXPECT_EQ(sink(found).ruling, Ruling::not_decidable);
  EXPECT_THAT(sink(found).reason, HasSubstr("at least 2 KV heads"));
  EXPECT_THAT(sink(found).reason, HasSubstr("a circular shift of the layers decides nothing"));
  EXPECT_THAT(sink(found).claims[0].naive, HasSubstr("p = "));
}

TEST(SinkVerdict, ACommonDriftWithDepthDecidesNothing) {
  SyntheticRun run = run_to_judge({});
  run.layers = 20;
  run.kv_heads = 1;
  run.value = [](const CellKey& key) -> std::optional<double> {
    const double depth = 0.6 + 0.01 * static_cast<double>(key.layer);
    if (key.name == "summary/bos_mass") return depth;
    if (key.name == "summary/kalman_gain" || key.name == "summary/without_first_kalman_gain") return depth;
    if (key.name == "summary/kalman_gain_scaled_half") return depth;
    return std::nullopt;
  };
  const Verdicts found = verdicts_of(run);
  EXPECT_EQ(sink(found).ruling, Ruling::not_decidable) << sink(found).reason;
  EXPECT_THAT(sink(found).reason, HasSubstr("takes a common drift with depth for a relation"));
  EXPECT_THAT(sink(found).claims[0].decisive, HasSubstr("circular shift (decides nothing): p = 0.05 (all 20"));
}

TEST(SinkVerdict, AModelWithoutASinkSaysNothingAboutSinks) {
  SyntheticRun run = run_to_judge({});
  const auto planted_value = run.value;
  run.value = [planted_value](const CellKey& key) -> std::optional<double> {
    if (key.name == "summary/bos_mass") return *planted_value(key) / 2;  // at most 0.035
    return planted_value(key);
  };
  const Verdicts found = verdicts_of(run);
  EXPECT_EQ(sink(found).ruling, Ruling::not_decidable);
  EXPECT_EQ(sink(found).reason, "no head is a sink: none of 32 heads has a BOS mass above 0.05, the largest is 0.035");
  EXPECT_THAT(sink(found).claims[0].decisive, HasSubstr("block permutation: p = "));  // the numbers stay
}

TEST(SinkVerdict, ARunThatLookedEverywhereCountsSinksOnEveryKey) {
  SyntheticRun run = run_to_judge({});
  const TemporaryFolder folder;
  const auto reader = write_run(folder.path() / "run", run);
  const SinkVsK sinks = sink_vs_k(reader);
  const Cells none = Cells::of(reader, std::vector<double>(2 * 4 * 32));
  SinkKeys keys{0.3, false, usable_lengths(reader), {}, {}, {}, {}, {}, none, none, none, 0};
  const auto ruled = [&] {
    return verdicts(context(reader), context_by_attention(reader), gain_theory(reader), sinks,
                    Maybe<SinkCount>::none("not counted"), any_sinks(keys, sinks))
        .predictions.at(0);
  };
  EXPECT_EQ(ruled().ruling, Ruling::not_decidable);  // although BOS masses reach 0.07
  EXPECT_EQ(
      ruled().reason,
      "no head is a sink: in none of 32 heads does a key get 0.3 or more of the attention of the queries that see "
      "it");
  SinkKey key{};
  key.length = 64;
  key.layer = 3;
  keys.keys = {key, key};
  EXPECT_EQ(any_sinks(keys, sinks).heads, 1u);
  EXPECT_EQ(ruled().ruling, Ruling::supported) << ruled().reason;
  ASSERT_EQ(ruled().claims.size(), 2u);  // the second stands beside the paper's and decides nothing
  EXPECT_THAT(ruled().claims[1].claim, HasSubstr("total sink mass (sinks at any key)"));
  EXPECT_THAT(ruled().claims[1].ruling, ::testing::AnyOf(Ruling::not_shown, Ruling::not_decidable));
  keys.keys[0].length = keys.keys[1].length = 32;  // not a length that was asked for
  EXPECT_EQ(any_sinks(keys, sinks).heads, 0u);
}

TEST(SinkVerdict, AModelThatNeverSeesBosHasNoSinkOnIt) {
  SyntheticRun run = run_to_judge({});
  run.attention.assign(8, "window:4");
  const Verdicts found = verdicts_of(run);
  EXPECT_EQ(sink(found).ruling, Ruling::not_decidable);
  EXPECT_THAT(sink(found).reason, HasSubstr("BOS is outside the window of every layer"));
}

TEST(SinkVerdict, SinksAtThePublishedLengthStandBesideTheLongOnes) {
  SyntheticRun run = run_to_judge({});
  run.lengths = {64, 128, 256};
  const auto planted_value = run.value;
  run.value = [planted_value](const CellKey& key) -> std::optional<double> {
    if (key.name == "summary/column_mean")  // two of four heads at 64 tokens, none later
      return key.length == 64 && key.last == 0 && key.head < 2 ? 0.4 : 0.1;
    return planted_value(key);
  };
  const TemporaryFolder folder;
  const auto reader = write_run(folder.path() / "run", run);
  const auto count = published_sinks(reader);
  ASSERT_TRUE(bool(count));
  EXPECT_EQ(count->sinks, 64u);  // 4 chunks x 8 layers x 2 heads
  EXPECT_EQ(count->cells, 128u);
  const Verdicts found =
      verdicts(context(reader), context_by_attention(reader), gain_theory(reader), sink_vs_k(reader), count);
  EXPECT_THAT(sink(found).claims[0].measurement,
              HasSubstr("at 64 tokens, the length of Gu et al., 64 of 128 (head, chunk) pairs (50.00%)"));
  run.lengths = {128, 256};
  const auto without = published_sinks(write_run(folder.path() / "long", run));
  ASSERT_FALSE(bool(without));
  EXPECT_EQ(without.reason(), "the run has no chunk of 64 tokens");
}

TEST(SinkVerdict, TheSignIsThatOfWhatTheSlotsDoNotExplain) {
  // BOS mass and K both rise from the first to the second head of every KV group. Apart from that, they are opposed.
  SyntheticRun run = run_to_judge({});
  run.layers = 12;
  run.heads = 8;
  run.kv_heads = 4;
  run.value = [](const CellKey& key) -> std::optional<double> {
    const double group = static_cast<double>(key.head / 2), slot = static_cast<double>(key.head % 2),
                 depth = static_cast<double>(key.layer);
    const double own = std::sin(5 * depth + 3 * group * group + 2 * slot + 1.0);
    if (key.name == "summary/bos_mass") return 0.3 + 0.02 * slot + 0.007 * own;
    if (key.name.starts_with("summary/kalman_gain") || key.name == "summary/without_first_kalman_gain") {
      return 0.6 + 0.02 * slot - 0.003 * own + 0.007 * std::sin(11 * depth + 7 * group + 4 * slot * slot + 0.5);
    }
    return std::nullopt;
  };
  const Verdicts found = verdicts_of(run);
  EXPECT_EQ(sink(found).ruling, Ruling::contradicted) << sink(found).reason;
  EXPECT_THAT(sink(found).claims[0].measurement, HasSubstr("+0.73"));
  EXPECT_THAT(sink(found).claims[0].decisive, HasSubstr("permutations; r by chance +0.809)"));
  EXPECT_THAT(sink(found).claims[0].decisive,
              HasSubstr("K without key 0: negative (r = +0.730, +0.809 by chance, p = 0.000"));
}

}  // namespace sink_verdict_test
}  // namespace gainlens::analyses
