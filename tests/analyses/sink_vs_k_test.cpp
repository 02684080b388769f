#include "analyses/sink_vs_k.h"

#include "analyses/heatmap.h"
#include "analyses/sinks.h"
#include "analyses/synthetic_run.h"
#include "analyses/value_norms.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace gainlens::analyses {
namespace sink_vs_k_test {

using gainlens::testing::CellKey;
using gainlens::testing::SyntheticRun;
using gainlens::testing::TemporaryFolder;
using gainlens::testing::write_run;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Two layers of three heads. The BOS mass is 0.1, 0.2, 0.3 in layer 0 and 0.5, 0.6, 0.7 in layer 1, as means over
/// chunks and lengths, which shift it up and down by equal amounts. K falls within each layer and rises from layer to
/// layer.
SyntheticRun planted_run() {
  SyntheticRun run;
  run.lengths = {16, 32};
  run.samples = 2;
  run.layers = 2;
  run.heads = 3;
  run.kv_heads = 1;
  run.value = [](const CellKey& key) -> std::optional<double> {
    const auto layer = static_cast<double>(key.layer), head = static_cast<double>(key.head);
    const double shift = (key.sample == 0 ? 0.01 : -0.01) + (key.length == 16 ? 0.02 : -0.02);
    if (key.name == "summary/bos_mass") return 0.1 + 0.4 * layer + 0.1 * head + shift;
    if (key.name == "summary/kalman_gain") return 0.5 + 0.4 * layer - 0.1 * head;
    return std::nullopt;
  };
  return run;
}

TEST(SinkVsK, PooledAndWithinLayersDiffer) {
  const TemporaryFolder folder;
  const SinkVsK result = sink_vs_k(write_run(folder.path() / "run", planted_run()));
  ASSERT_EQ(result.points.size(), 6u);
  EXPECT_NEAR(result.points[4].bos_mass, 0.6, 1e-12);  // layer 1, head 1
  const SinkCorrelation& k = *result.correlations[0];
  // x = 0.4 L + 0.1 h, y = 0.4 L - 0.1 h: cov = 0.04 - 0.02/3, var = 0.04 + 0.02/3
  EXPECT_NEAR(*k.pooled.pearson, (0.04 - 0.02 / 3) / (0.04 + 0.02 / 3), 1e-12);
  EXPECT_NEAR(*k.within_layers.pearson, -1, 1e-12);
  ASSERT_EQ(k.by_layer.size(), 2u);
  EXPECT_NEAR(*k.by_layer[1].second.spearman, -1, 1e-12);
  EXPECT_EQ(k.within_attention_type.at("global").points, 6u);
}

TEST(SinkVsK, HeadsAboveTheThresholds) {
  const TemporaryFolder folder;
  SyntheticRun run = planted_run();
  run.lengths = {16};
  run.samples = 1;  // masses shifted by 0.03: 0.13 0.23 0.33 | 0.53 0.63 0.73
  const SinkVsK result = sink_vs_k(write_run(folder.path() / "run", run));
  ASSERT_EQ(result.sinks.size(), 2u);
  EXPECT_EQ(result.sinks[0].heads, 6u);
  EXPECT_EQ(result.sinks[1].heads, 4u);
  EXPECT_THAT(result.sinks[1].layers, ElementsAre(0, 1));
  EXPECT_NEAR(*result.sinks[1].smallest_gain, 0.3, 1e-12);  // head 2 of layer 0
  EXPECT_THAT(result.late_layers, ElementsAre(1));
  EXPECT_NEAR(result.late_gain->low, 0.7, 1e-12);
  EXPECT_NEAR(result.late_gain->high, 0.9, 1e-12);
}

TEST(SinkVsK, LayersWhoseWindowHidesKeyZeroAreApart) {
  const TemporaryFolder folder;
  SyntheticRun run = planted_run();
  run.attention = {"window:8", "global"};  // at 16 tokens second-half queries begin at 8
  const SinkVsK result = sink_vs_k(write_run(folder.path() / "run", run));
  ASSERT_EQ(result.apart.size(), 1u);
  EXPECT_EQ(result.apart[0].layer, 0);
  EXPECT_THAT(result.apart[0].reason, HasSubstr("at 16 and 32"));
  EXPECT_EQ(result.correlations[0]->pooled.points, 3u);
  EXPECT_EQ(result.correlations[0]->within_attention_type.at("window:8").points, 3u);
  EXPECT_EQ(result.sinks[0].heads, 3u);
}

TEST(SinkVsK, PartlyHiddenKeyZeroIsNoted) {
  const TemporaryFolder folder;
  SyntheticRun run = planted_run();
  run.lengths = {16};
  run.attention = {"window:9", "global"};
  const SinkVsK result = sink_vs_k(write_run(folder.path() / "run", run));
  EXPECT_TRUE(result.apart.empty());
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_THAT(result.notes[0], HasSubstr("window:9 at 16"));
}

TEST(SinkVsK, AllLayersApartLeaveNothingToPool) {
  const TemporaryFolder folder;
  SyntheticRun run = planted_run();
  run.attention = {"window:2", "window:2"};
  const OrderedJson json = to_json(sink_vs_k(write_run(folder.path() / "run", run)));
  EXPECT_TRUE(json["correlations"]["kalman_gain"]["pooled"]["pearson"].is_null());
  EXPECT_THAT(json["correlations"]["kalman_gain"]["pooled"]["pearson_reason"], HasSubstr("0 points"));
  EXPECT_EQ(json["set_apart"].size(), 2u);
}

TEST(SinkVsK, HeadWithoutAValueIsLeftOutAndCounted) {
  const TemporaryFolder folder;
  SyntheticRun run = planted_run();
  const auto planted_value = run.value;
  run.value = [planted_value](const CellKey& key) -> std::optional<double> {
    if (key.name == "summary/kalman_gain" && key.layer == 0 && key.head == 0)
      return std::numeric_limits<double>::quiet_NaN();
    return planted_value(key);
  };
  const SinkVsK result = sink_vs_k(write_run(folder.path() / "run", run));
  EXPECT_EQ(result.correlations[0]->left_out, 1u);
  EXPECT_EQ(result.correlations[0]->pooled.points, 5u);
  EXPECT_THAT(result.notes.back(), HasSubstr("4 values"));  // 2 lengths x 2 chunks
}

TEST(SinkVsK, OneHeadOfOneLayerHasReasons) {
  const TemporaryFolder folder;
  SyntheticRun run = planted_run();
  run.layers = run.heads = 1;
  const SinkVsK result = sink_vs_k(write_run(folder.path() / "run", run));
  EXPECT_THAT(result.correlations[0]->pooled.pearson.reason(), HasSubstr("1 point;"));
  EXPECT_THAT(result.correlations[0]->within_layers.pearson.reason(), HasSubstr("0 points"));
}

TEST(SinkVsK, RunWithoutStatisticsHasReasons) {
  const TemporaryFolder folder;
  SyntheticRun run = planted_run();
  run.statistics = false;
  run.gated = false;
  const auto reader = write_run(folder.path() / "run", run);
  const OrderedJson json = to_json(sink_vs_k(reader));
  EXPECT_TRUE(json["correlations"]["kalman_gain"].is_null());
  EXPECT_THAT(json["correlations"]["kalman_gain_reason"], HasSubstr("no head with both"));
  EXPECT_EQ(sinks(reader).reason(), "the run has no summary/bos_mass");
  EXPECT_EQ(heatmap(reader, "n_eff").reason(), "the run has no summary/n_eff");
  EXPECT_EQ(value_norms(reader).reason(), "the run has no values/norm");
}

TEST(SinkVsK, SinkShareCountsColumnMeans) {
  const TemporaryFolder folder;
  SyntheticRun run = planted_run();
  run.value = [](const CellKey& key) -> std::optional<double> {
    if (key.name == "summary/column_mean") return key.last == 0 && key.head == 0 ? 0.4 : 0.1;
    return std::nullopt;
  };
  const SinkVsK result = sink_vs_k(write_run(folder.path() / "run", run));
  EXPECT_NEAR(*result.sink_share[0], 1.0 / 3, 1e-12);
  EXPECT_DOUBLE_EQ(*result.sink_share[1], 0);
}

TEST(SinkVsK, InferenceStandsBesideEveryGain) {
  const TemporaryFolder folder;
  SyntheticRun run = planted_run();
  run.layers = 20;
  run.kv_heads = 3;
  run.samples = 4;
  run.nested = true;
  const SinkVsK result =
      sink_vs_k(write_run(folder.path() / "run", run), {.resampling = {.permutations = 999, .seed = 7}});
  for (const auto& correlation : result.correlations) {
    ASSERT_TRUE(correlation) << correlation.reason();
    const SinkInference& inference = correlation->inference;
    EXPECT_EQ(inference.blocks.seed, 7u);
    EXPECT_EQ(inference.blocks.resamples, 999);
    EXPECT_TRUE(inference.shift.pearson.p) << inference.shift.pearson.p.reason();
    EXPECT_TRUE(inference.layers) << inference.layers.reason();
    EXPECT_TRUE(inference.text) << inference.text.reason();
  }
  const SinkDecision& decision = result.correlations[0]->inference.decision;
  EXPECT_EQ(decision.test, "block permutation");
  EXPECT_EQ(decision.verdict, "negative");  // only the fall of K within each layer counts
  EXPECT_NEAR(*decision.statistic, *result.correlations[0]->within_layers.pearson, 1e-12);
  EXPECT_EQ(to_json(result)["correlations"]["kalman_gain"]["inference"]["decision"]["verdict"], "negative");
}

TEST(SinkVsK, GroupsAreThoseOfTheLayersOwnKvHeads) {
  const TemporaryFolder folder;
  SyntheticRun run = planted_run();
  run.kv_heads = run.heads;
  const auto arrangements = [&](const char* name) {
    return sink_vs_k(write_run(folder.path() / name, run)).correlations[0]->inference.blocks.arrangements;
  };
  const double alike = arrangements("alike");
  run.layer_kv_heads.assign(static_cast<std::size_t>(run.layers), run.kv_heads);
  run.layer_kv_heads[0] = 1;  // nothing to exchange in layer 0
  double factorial = 1;
  for (std::int64_t head = 2; head <= run.heads; ++head) factorial *= static_cast<double>(head);
  EXPECT_EQ(arrangements("fewer"), alike / factorial);
}

TEST(SinkVsK, CircularShiftIsShownAndDecidesNothing) {
  const TemporaryFolder folder;
  SyntheticRun run = planted_run();
  run.layers = 20;
  run.kv_heads = 1;
  const SinkVsK result = sink_vs_k(write_run(folder.path() / "run", run));
  const SinkInference& inference = result.correlations[0]->inference;
  EXPECT_LE(*inference.shift.pearson.p, significance);  // both rise with depth
  EXPECT_EQ(inference.decision.test, "none");
  EXPECT_EQ(inference.decision.verdict, "not decidable");
  EXPECT_THAT(inference.decision.p.reason(), HasSubstr("a common drift with depth"));
  run.attention.assign(20, "global");
  run.attention[3] = "window:500";
  const SinkVsK mixed = sink_vs_k(write_run(folder.path() / "mixed", run));
  EXPECT_THAT(mixed.correlations[0]->inference.shift.pearson.p.reason(),
              HasSubstr("2 kinds of attention (global, window:500)"));
}

TEST(SinkVsK, TextIsLeftOutAtAllLengthsTogether) {
  const TemporaryFolder folder;
  SyntheticRun run = planted_run();
  run.samples = 5;
  run.bos.reset();  // chunk 0 of 32 is chunks 0 and 1 of 16
  const auto text_of = [&](const char* name) {
    return sink_vs_k(write_run(folder.path() / name, run)).correlations[0]->inference.text;
  };
  const auto consecutive = text_of("consecutive");
  EXPECT_EQ(consecutive->units, 5u);
  EXPECT_EQ(consecutive->degrees_of_freedom, 2);  // the chunks of 16 lie in three stretches
  run.nested = true;
  EXPECT_EQ(text_of("nested")->degrees_of_freedom, 4);
  run.missing = {{16, 0}, {32, 4}};
  EXPECT_EQ(text_of("incomplete")->degrees_of_freedom, 3);
  run.nested = false;
  run.missing.clear();
  run.samples = 4;
  EXPECT_THAT(text_of("few").reason(),
              HasSubstr("3 separate stretches of text, and the chunks of 16 tokens lie in 2;"));
}

TEST(SinkVsK, OneChunkHasNoIntervalOverText) {
  const TemporaryFolder folder;
  SyntheticRun run = planted_run();
  run.samples = 1;
  EXPECT_THAT(sink_vs_k(write_run(folder.path() / "run", run)).correlations[0]->inference.text.reason(),
              HasSubstr("lie in 1;"));
}

TEST(SinkVsK, SinkShareByLength) {
  const TemporaryFolder folder;
  SyntheticRun run = planted_run();
  run.value = [](const CellKey& key) -> std::optional<double> {
    if (key.name == "summary/column_mean") return key.last == 0 && key.length == 16 ? 0.4 : 0.1;
    return std::nullopt;
  };
  const SinkVsK result = sink_vs_k(write_run(folder.path() / "run", run));
  EXPECT_DOUBLE_EQ(*result.sink_share[0], 0.5);
  EXPECT_DOUBLE_EQ(*result.sink_share_by_length[0][0], 1);
  EXPECT_DOUBLE_EQ(*result.sink_share_by_length[1][0], 0);
}

TEST(SinkVsK, SinkShareLeavesOutLayersThatCannotSeeKeyZero) {
  const TemporaryFolder folder;
  SyntheticRun run = planted_run();
  run.attention = {"window:16", "global"};  // layer 0 is set apart at 32 tokens, but not at 16
  run.value = [](const CellKey& key) -> std::optional<double> {
    if (key.name == "summary/column_mean") return key.last == 0 && key.layer == 1 ? 0.4 : 0.1;
    return std::nullopt;
  };
  const SinkVsK result = sink_vs_k(write_run(folder.path() / "run", run));
  EXPECT_DOUBLE_EQ(*result.sink_share_by_length[0][0], 0.5);
  EXPECT_DOUBLE_EQ(*result.sink_share_by_length[1][0], 1);
  EXPECT_DOUBLE_EQ(*result.sink_share[0], 2.0 / 3);  // 6 of 9 heads in each chunk
  EXPECT_EQ(result.sinks_on_key_0.sinks * 3, result.sinks_on_key_0.cells * 2);
  EXPECT_EQ(result.sinks_on_key_0.cells % 9, 0u);
  EXPECT_EQ(to_json(result)["sinks_on_key_0"]["head_chunk_pairs"], result.sinks_on_key_0.cells);
  run.attention = {"window:2", "window:2"};
  const SinkVsK hidden = sink_vs_k(write_run(folder.path() / "hidden", run));
  EXPECT_EQ(hidden.sink_share[0].reason(), "key 0 is outside the window of every layer");
}

TEST(SinkVsK, ImpossibleResamplesAreRefused) {
  const TemporaryFolder folder;
  const auto reader = write_run(folder.path() / "run", planted_run());
  EXPECT_THAT(
      [&] { sink_vs_k(reader, {.resampling = {.permutations = 10}}); },
      ::testing::ThrowsMessage<InvalidArgument>("--permutations: 10; at least 19 are needed to reach p = 0.05"));
  EXPECT_THROW(check({.resampling = {.permutations = 18}}), InvalidArgument);
  EXPECT_NO_THROW(check({.resampling = {.permutations = 19}}));
  EXPECT_THAT(
      [] { check({.resampling = {.permutations = 10'000'001}}); },
      ::testing::ThrowsMessage<InvalidArgument>(HasSubstr("--permutations: 10000001; 19 to 10000000 are allowed")));
  EXPECT_THAT([] { check({.equivalence_margin = 0}); },
              ::testing::ThrowsMessage<InvalidArgument>(HasSubstr("margin: 0; it must be positive")));
}

TEST(Sinks, RankingHoldsEveryHead) {
  const TemporaryFolder folder;
  SyntheticRun run = planted_run();
  const auto planted_value = run.value;
  run.value = [planted_value](const CellKey& key) -> std::optional<double> {
    if (key.name == "summary/column_mean") return key.layer == 1 && key.head == 2 && key.sample == 0 ? 0.4 : 0.1;
    return planted_value(key);
  };
  const Sinks result = *sinks(write_run(folder.path() / "run", run), {.sinks = 2});
  EXPECT_EQ(result.ranking.size(), 6u);
  EXPECT_EQ(result.ranking[5].rank, 6u);
  EXPECT_EQ(result.ranking[5].layer, 0);
  EXPECT_DOUBLE_EQ(*result.heads[0].sink_share, 0.5);  // chunk 0 of two, at both lengths
  EXPECT_TRUE(result.heads[0].without_first_kalman_gain);
}

TEST(Sinks, StrongestFirst) {
  const TemporaryFolder folder;
  const auto reader = write_run(folder.path() / "run", planted_run());
  const Sinks result = *sinks(reader, {.sinks = 2});
  ASSERT_EQ(result.heads.size(), 2u);
  EXPECT_EQ(result.all_heads, 6u);
  EXPECT_EQ(result.heads[0].layer, 1);
  EXPECT_EQ(result.heads[0].head, 2);
  EXPECT_NEAR(result.heads[0].bos_mass, 0.7, 1e-12);
  EXPECT_NEAR(*result.heads[0].kalman_gain, 0.7, 1e-12);
  EXPECT_EQ(result.heads[1].head, 1);
}

TEST(Heatmap, LongestLengthAndLayersZeroByConstruction) {
  const TemporaryFolder folder;
  SyntheticRun run = planted_run();
  run.attention = {"window:16", "global"};  // key 0 is hidden only at 32 tokens
  const auto reader = write_run(folder.path() / "run", run);
  const Heatmap map = *heatmap(reader, "bos_mass");
  EXPECT_EQ(map.length.tokens, 32);
  EXPECT_NEAR(map.at(1, 2), 0.7 - 0.02, 1e-12);
  EXPECT_THAT(map.by_construction, ElementsAre(true, false));
}

TEST(ValueNorms, RestIsWhatRemainsOfTheBins) {
  // 4 keys in 2 bins with means 2 and 4: sum 12. The first key is 1, so the mean of the other three is 11/3.
  EXPECT_DOUBLE_EQ(mean_of_rest({1.0}, {2.0, 4.0}, 4), 11.0 / 3);
  // 3 keys in 4 bins: keys 0, 1, 2 in bins 0, 1, 2 (floor(4 t / 3)); bin 3 is empty
  EXPECT_DOUBLE_EQ(mean_of_rest({5.0}, {5.0, 6.0, 8.0, std::numeric_limits<double>::quiet_NaN()}, 3), 7);
}

TEST(ValueNorms, FirstKeysAgainstTheRest) {
  const TemporaryFolder folder;
  SyntheticRun run = planted_run();
  run.lengths = {64};  // one key per bin
  run.value = [](const CellKey& key) -> std::optional<double> {
    if (key.name == "values/norm") return key.last == 0 ? 0.5 : 2.0;
    if (key.name == "values/first_norm") return key.last == 0 ? 0.5 : 2.0;
    return std::nullopt;
  };
  const ValueNormsResult result = *value_norms(write_run(folder.path() / "run", run));
  ASSERT_EQ(result.heads.size(), 2u);
  EXPECT_DOUBLE_EQ(result.heads[0].first[0], 0.5);
  EXPECT_DOUBLE_EQ(result.heads[0].rest, 2.0);
  EXPECT_EQ(result.heads[0].profile.size(), 64u);
  EXPECT_DOUBLE_EQ(result.heads[0].profile[0], 0.5);
  EXPECT_DOUBLE_EQ(*result.median_ratio, 0.25);
  EXPECT_EQ(result.shorter, 2u);
}

TEST(ValueNorms, EightKeysLeaveNoRest) {
  const TemporaryFolder folder;
  SyntheticRun run = planted_run();
  run.lengths = {8};
  EXPECT_THAT(value_norms(write_run(folder.path() / "run", run)).reason(), HasSubstr("no key beyond the first 8"));
}

}  // namespace sink_vs_k_test
}  // namespace gainlens::analyses
