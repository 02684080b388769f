#include "analyses/comparison.h"

#include "analyses/statistics.h"
#include "analyses/synthetic_run.h"
#include "core/error.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace gainlens::analyses {
namespace comparison_test {

using gainlens::testing::CellKey;
using gainlens::testing::planted;
using gainlens::testing::SyntheticRun;
using gainlens::testing::TemporaryFolder;
using gainlens::testing::write_run;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

SyntheticRun small_run() {
  SyntheticRun run;
  run.lengths = {64, 128};
  run.layers = 4;
  return run;
}

const PairedDifference& find(const Comparison& comparison, std::size_t length, std::string_view name) {
  const auto& quantities = comparison.lengths.at(length).quantities;
  return *std::find_if(quantities.begin(), quantities.end(),
                       [&](const PairedDifference& q) { return q.quantity.name == name; });
}

const RunDifference* find_difference(const std::vector<RunDifference>& differences, std::string_view what) {
  const auto found =
      std::find_if(differences.begin(), differences.end(), [&](const RunDifference& d) { return d.what == what; });
  return found == differences.end() ? nullptr : &*found;
}

/// Adds 1, 2, 3 to n_eff of samples 0, 1, 2: mean 2, standard error 1/sqrt(3), t(0.975, 2) = 4.302653.
SyntheticRun shifted(SyntheticRun run) {
  run.weights = 'e';
  run.value = [run](const CellKey& key) -> std::optional<double> {
    if (key.name == "summary/n_eff") return planted(run, key) + 1 + static_cast<double>(key.sample);
    return std::nullopt;
  };
  return run;
}

TEST(Comparison, PairsChunksByHand) {
  const TemporaryFolder folder;
  const auto a = write_run(folder.path() / "a", small_run());
  const auto b = write_run(folder.path() / "b", shifted(small_run()));
  const Comparison comparison = compare(a, b);
  EXPECT_THAT(comparison.unpaired, IsEmpty());
  ASSERT_EQ(comparison.lengths.size(), 2u);
  const PairedDifference& n_eff = find(comparison, 0, "n_eff");
  EXPECT_NEAR(*n_eff.difference, 2, 1e-9);
  EXPECT_NEAR(n_eff.interval->low, 2 - 4.302653 / std::sqrt(3.0), 1e-5);
  EXPECT_NEAR(n_eff.interval->high, 2 + 4.302653 / std::sqrt(3.0), 1e-5);
  EXPECT_EQ(n_eff.pairs, 3u);
  EXPECT_NEAR(*n_eff.second - *n_eff.first, 2, 1e-9);
  EXPECT_DOUBLE_EQ(*find(comparison, 0, "kalman_gain").difference, 0);
  EXPECT_EQ(find(comparison, 0, "kalman_gain").interval.reason(), same_in_every_chunk);  // and no interval of no width
  EXPECT_THAT(comparison.caveats.front(), HasSubstr("one training run"));
}

TEST(Comparison, HeadByHead) {
  const TemporaryFolder folder;
  SyntheticRun other = small_run();
  other.weights = 'e';
  other.value = [](const CellKey& key) -> std::optional<double> {
    if (key.name != "sinks/second_half_mean" || key.last > 0 || key.layer != 2 || key.head != 0) return std::nullopt;
    return 0.5 + 0.1 * static_cast<double>(key.sample);  // 0.6 in the other run
  };
  const Comparison result = compare(write_run(folder.path() / "a", small_run()), write_run(folder.path() / "b", other));
  EXPECT_EQ(result.no_heads, "");
  ASSERT_EQ(result.heads.size(), 2u * 4 * 4);
  const HeadDifference& head = result.heads[2 * 4];
  EXPECT_EQ(head.tokens, 64);
  EXPECT_EQ(head.layer, 2);
  EXPECT_EQ(head.head, 0);
  EXPECT_NEAR(*head.quantities[1].first, 0.6, 1e-12);
  EXPECT_NEAR(*head.quantities[1].difference, 0, 1e-12);  // -0.1, 0, 0.1
  EXPECT_NEAR(head.quantities[1].interval->high, 4.302653 * 0.1 / std::sqrt(3), 1e-6);
  EXPECT_EQ(head.quantities[0].pairs, 3u);
  EXPECT_EQ(*result.heads[0].quantities[1].first, 0);                         // no sink
  EXPECT_NEAR(*find(result, 0, "sink_mass").first, (0.6 + 0.2) / 16, 1e-12);  // a key below 0.3 counts
  EXPECT_EQ(to_json(result).at("heads").at(8).at("layer"), 2);
  for (std::size_t i = 0; i < compared_head_quantities.size(); ++i) {
    EXPECT_EQ(head.quantities[i].quantity.name, compared_head_quantities[i]);
    EXPECT_TRUE(to_json(result).at("heads").at(8).contains(compared_head_quantities[i]));
  }
}

TEST(Comparison, HeadsOfOtherModelsAreNotMatched) {
  const TemporaryFolder folder;
  SyntheticRun other = small_run();
  other.weights = 'e';
  other.heads = 2;
  const Comparison result = compare(write_run(folder.path() / "a", small_run()), write_run(folder.path() / "b", other));
  EXPECT_TRUE(result.heads.empty());
  EXPECT_EQ(result.no_heads, "the models have 4 and 2 heads a layer");
}

TEST(Comparison, OnlyChunksOfBothCount) {
  const TemporaryFolder folder;
  SyntheticRun first = small_run();
  first.missing = {{64, 0}};
  const auto a = write_run(folder.path() / "a", first);
  const auto b = write_run(folder.path() / "b", shifted(small_run()));
  const Comparison comparison = compare(a, b);
  EXPECT_EQ(find(comparison, 0, "n_eff").pairs, 2u);
  EXPECT_NEAR(*find(comparison, 0, "n_eff").difference, 2.5, 1e-9);  // samples 1 and 2: 2 and 3
  EXPECT_NEAR(*find(comparison, 0, "n_eff").second - *find(comparison, 0, "n_eff").first, 2.5, 1e-9);
}

TEST(Comparison, SinkShareCountsHeadsAboveTheThreshold) {
  const TemporaryFolder folder;
  SyntheticRun all_sinks = small_run();
  all_sinks.family = "other";
  all_sinks.value = [](const CellKey& key) -> std::optional<double> {
    return key.name == "summary/column_mean" ? std::optional(0.31) : std::nullopt;
  };
  const auto a = write_run(folder.path() / "a", small_run());
  const auto b = write_run(folder.path() / "b", all_sinks);
  const PairedDifference share = find(compare(a, b), 1, "sink_share");
  EXPECT_DOUBLE_EQ(*share.first, 1.0 / 16);  // one planted head of 4 layers x 4 heads
  EXPECT_DOUBLE_EQ(*share.second, 1);
}

TEST(Comparison, OtherTokensAreNotPairedAndSaidSo) {
  const TemporaryFolder folder;
  SyntheticRun other = shifted(small_run());
  other.bos.reset();
  other.bos_policy = "never";
  other.lengths = {128, 256};
  const auto a = write_run(folder.path() / "a", small_run());
  const auto b = write_run(folder.path() / "b", other);
  const Comparison comparison = compare(a, b);
  EXPECT_THAT(comparison.unpaired, HasSubstr("key 0 is another token"));
  ASSERT_EQ(comparison.lengths.size(), 1u);
  EXPECT_FALSE(find(comparison, 0, "n_eff").difference);
  EXPECT_TRUE(find(comparison, 0, "n_eff").first && find(comparison, 0, "n_eff").second);
  EXPECT_THAT(comparison.only_first, ElementsAre(64));
  EXPECT_THAT(comparison.only_second, ElementsAre(256));
}

TEST(Comparison, AGateThatOneLacksHasNoDifference) {
  const TemporaryFolder folder;
  SyntheticRun plain = small_run();
  plain.gated = false;
  const auto a = write_run(folder.path() / "a", plain);
  const auto b = write_run(folder.path() / "b", small_run());
  const PairedDifference gate = find(compare(a, b), 0, "gate");
  EXPECT_FALSE(gate.first);
  EXPECT_TRUE(gate.second);
  EXPECT_THAT(gate.difference.reason(), HasSubstr("in the first run: the model has no attention gate"));
}

TEST(Comparison, TheSameRunTwiceIsRefused) {
  const TemporaryFolder folder;
  const auto a = write_run(folder.path() / "a", small_run());
  const auto b = write_run(folder.path() / "b", small_run());
  EXPECT_THAT([&] { compare(a, b); }, ThrowsMessage<InvalidArgument>(HasSubstr("hold the same request")));
}

/// The synthetic run, swept with --layers first:last + 1 of a model of 4 layers. n_eff of layer l is 10 (l + 1).
runfile::RunReader run_of_layers(const std::filesystem::path& folder, std::int64_t first, std::int64_t last,
                                 char weights = 'b') {
  SyntheticRun run = small_run();
  run.first_layer = first;
  run.layers = last - first + 1;
  run.weights = weights;
  run.value = [first](const CellKey& key) -> std::optional<double> {
    if (key.name == "summary/n_eff") return static_cast<double>(10 * (first + key.layer + 1));
    return std::nullopt;
  };
  return write_run(folder, run);
}

TEST(Comparison, OnlyLayersOfBothAreCompared) {
  const TemporaryFolder folder;
  const auto a = run_of_layers(folder.path() / "a", 0, 3), b = run_of_layers(folder.path() / "b", 1, 2);
  const Comparison comparison = compare(a, b);
  EXPECT_THAT(comparison.shared_layers, ElementsAre(1, 2));
  const RunDifference* listed = find_difference(comparison.differences, "layers measured");
  ASSERT_TRUE(listed);
  EXPECT_EQ(listed->first, "0-3");
  EXPECT_EQ(listed->second, "1, 2");
  EXPECT_FALSE(find_difference(comparison.differences, "attention"));
  // Layer 2 is the deep one of both. Alone, the deep layer of the first run would be layer 3.
  EXPECT_DOUBLE_EQ(*find(comparison, 0, "n_eff").first, 30);
  EXPECT_DOUBLE_EQ(*find(comparison, 0, "n_eff").second, 30);
  EXPECT_EQ(to_json(comparison)["layers_compared"], (std::vector<int>{1, 2}));
  const Comparison two_deep = compare(a, b, {.deep_layers = 2});
  EXPECT_DOUBLE_EQ(*find(two_deep, 0, "n_eff").first, 25);
  EXPECT_THAT([&] { compare(a, b, {.deep_layers = 3}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("--deep-layers: 3; 1 to 2 are allowed")));
}

TEST(Comparison, SinksAreCountedInLayersOfBoth) {
  const TemporaryFolder folder;
  SyntheticRun all = small_run();
  all.value = [](const CellKey& key) -> std::optional<double> {
    if (key.name == "summary/column_mean") return key.layer == 3 ? 0.9 : 0.0;
    if (key.name == "summary/bos_mass") return key.layer == 3 ? 0.9 : 0.1;
    return std::nullopt;
  };
  SyntheticRun part = all;
  part.layers = 3;
  const auto a = write_run(folder.path() / "a", all), b = write_run(folder.path() / "b", part);
  const Comparison comparison = compare(a, b);
  EXPECT_DOUBLE_EQ(*find(comparison, 0, "sink_share").first, 0);
  EXPECT_NEAR(*find(comparison, 0, "bos_mass").first, 0.1, 1e-12);
  EXPECT_NEAR(*find(comparison, 0, "bos_mass").difference, 0, 1e-12);
}

TEST(Comparison, WithoutACommonLayerNothingIsCompared) {
  const TemporaryFolder folder;
  const auto a = run_of_layers(folder.path() / "a", 0, 1), b = run_of_layers(folder.path() / "b", 2, 3);
  const Comparison comparison = compare(a, b);
  EXPECT_EQ(comparison.refused,
            "no layer was measured in both runs (0, 1 in the first, 2, 3 in the second); sweep with other --layers");
  EXPECT_THAT(comparison.lengths, IsEmpty());
  EXPECT_EQ(to_json(comparison)["lengths_reason"], comparison.refused);
}

TEST(Comparison, ModelsOfOtherDepthsKeepTheirOwnDeepLayers) {
  const TemporaryFolder folder;
  const auto a = run_of_layers(folder.path() / "a", 0, 3), b = run_of_layers(folder.path() / "b", 0, 2, 'e'),
             part = run_of_layers(folder.path() / "part", 2, 3, 'e');
  const Comparison comparison = compare(a, b);
  EXPECT_THAT(comparison.shared_layers, IsEmpty());
  ASSERT_TRUE(find_difference(comparison.differences, "number of layers"));
  EXPECT_DOUBLE_EQ(*find(comparison, 0, "n_eff").first, 40);
  EXPECT_DOUBLE_EQ(*find(comparison, 0, "n_eff").second, 30);
  EXPECT_THAT(compare(a, part).shared_layers, ElementsAre(2, 3));  // a part: it does not begin at layer 0
}

TEST(Comparison, ARunWithoutStatisticsIsADifference) {
  const TemporaryFolder folder;
  SyntheticRun none = small_run();
  none.statistics = false;
  none.layers = 2;  // no number depends on it
  const auto a = write_run(folder.path() / "a", small_run()), b = write_run(folder.path() / "b", none);
  const Comparison comparison = compare(a, b);
  const RunDifference* listed = find_difference(comparison.differences, "statistics");
  ASSERT_TRUE(listed);
  EXPECT_EQ(listed->first, "all");
  EXPECT_EQ(listed->second, "none");
  EXPECT_THAT(comparison.caveats, ::testing::Contains(HasSubstr("only NLL is compared")));
  EXPECT_FALSE(find_difference(comparison.differences, "layers measured"));
  EXPECT_TRUE(find(comparison, 0, "nll").difference);
  EXPECT_FALSE(find(comparison, 0, "n_eff").difference);
}

TEST(RequestDifferences, NamesWhatUnpairsAndWhatDoesNot) {
  const runfile::Request a = gainlens::testing::request_of(small_run());
  runfile::Request b = a;
  EXPECT_THAT(request_differences(a, b), IsEmpty());
  b.text = std::string(64, 'e');
  b.dtype = "float32";
  b.layers.pop_back();
  b.attention.pop_back();
  b.version = a.version - 1;
  const std::vector<RunDifference> differences = request_differences(a, b);
  ASSERT_TRUE(find_difference(differences, "text"));
  EXPECT_TRUE(find_difference(differences, "text")->unpairs);
  EXPECT_EQ(find_difference(differences, "text")->second, "sha256 eeeeeeeeeeee");
  ASSERT_TRUE(find_difference(differences, "dtype"));
  EXPECT_FALSE(find_difference(differences, "dtype")->unpairs);
  ASSERT_TRUE(find_difference(differences, "layers measured"));
  EXPECT_EQ(find_difference(differences, "layers measured")->second, "0-2");
  EXPECT_TRUE(find_difference(differences, "statistics version"));
  EXPECT_EQ(differences.size(), 4u);
}

TEST(RequestDifferences, NestedChunksOfAnotherLongestLengthAreOtherText) {
  runfile::Request a = gainlens::testing::request_of(small_run());
  a.nested = true;
  runfile::Request b = a;
  b.lengths.push_back(512);
  ASSERT_TRUE(find_difference(request_differences(a, b), "longest nested chunk"));
  b.nested = a.nested = false;
  EXPECT_THAT(request_differences(a, b), IsEmpty());
}

TEST(RequestDifferences, SpreadChunksAreOtherText) {
  runfile::Request a = gainlens::testing::request_of(small_run());
  runfile::Request b = a;
  b.spread = 100'000;
  const std::vector<RunDifference> differences = request_differences(a, b);
  const RunDifference* chunking = find_difference(differences, "chunking");
  ASSERT_TRUE(chunking);
  EXPECT_TRUE(chunking->unpairs);
  EXPECT_EQ(chunking->first, "consecutive");
  EXPECT_EQ(chunking->second, "spread over 100000 tokens of text");
  a = b;
  a.samples += 1;
  EXPECT_TRUE(find_difference(request_differences(a, b), "number of spread chunks"));
}

}  // namespace comparison_test
}  // namespace gainlens::analyses
