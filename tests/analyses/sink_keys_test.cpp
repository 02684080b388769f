#include "analyses/sink_keys.h"
#include "analyses/audit.h"

#include "analyses/sink_vs_k.h"
#include "analyses/synthetic_run.h"
#include "core/error.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gainlens::analyses {
namespace sink_keys_test {

using testing::CellKey;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::SyntheticRun;
using testing::TemporaryFolder;
using ::testing::ThrowsMessage;

/// A key of a planted run: where it is a sink, and how strongly.
struct Plant {
  std::int64_t sample, layer, head, position;
  double column_mean;
};

/// 2 chunks of 64 tokens, 3 layers of 2 heads, whose only sinks are the planted ones. Their second-half mean is half of
/// the column mean.
SyntheticRun planted_run(std::vector<Plant> plants) {
  SyntheticRun run;
  run.lengths = {64};
  run.samples = 2;
  run.layers = 3;
  run.first_layer = 4;
  run.heads = 2;
  run.kv_heads = 1;
  run.value = [plants](const CellKey& key) -> std::optional<double> {
    if (!key.name.starts_with("sinks/")) return std::nullopt;
    const std::string_view name = key.name.substr(6);
    const bool integer = name == "position" || name == "token" || name == "queries" || name == "stream_dimension";
    std::int64_t rank = 0;
    for (const Plant& plant : plants) {
      if (plant.sample != key.sample || plant.layer != key.layer || plant.head != key.head) continue;
      if (rank++ != key.last) continue;
      if (name == "position") return plant.position;
      if (name == "token") return plant.position == 0 ? 1 : 30;
      if (name == "queries") return 64 - plant.position;
      if (name == "column_mean") return plant.column_mean;
      if (name == "second_half_mean") return plant.column_mean / 2;
      if (name == "value_norm_ratio") return 0.25;
      if (name == "stream_ratio") return 6.5;
      return integer ? 3 : 0.5;
    }
    return integer ? -1 : std::nan("");
  };
  return run;
}

SinkKeys sinks_of(const SyntheticRun& run, double threshold = 0.3) {
  const TemporaryFolder folder;
  return sink_keys(testing::write_run(folder.path(), run), threshold);
}

TEST(SinkKeys, ASinkInTheMiddleOfTheTextIsFoundWithItsToken) {
  const SinkKeys sinks = sinks_of(planted_run({{1, 2, 1, 40, 0.35}}));
  ASSERT_EQ(sinks.keys.size(), 1u);
  const SinkKey& key = sinks.keys.front();
  EXPECT_EQ(key.length, 64);
  EXPECT_EQ(key.sample, 1);
  EXPECT_EQ(key.layer, 6);  // the model's own number
  EXPECT_EQ(key.head, 1);
  EXPECT_EQ(key.position, 40);
  EXPECT_EQ(key.token, 30);
  EXPECT_EQ(key.text, "\u2581");
  EXPECT_EQ(key.token_class, TokenClass::space);
  EXPECT_EQ(key.queries, 24);
  EXPECT_DOUBLE_EQ(key.column_mean, 0.35);
  EXPECT_FALSE(sinks.first_keys_only);
  EXPECT_DOUBLE_EQ(sinks.mass.at(0, 1, 2, 1), 0.175);
  EXPECT_EQ(sinks.mass.at(0, 0, 2, 1), 0);
}

TEST(SinkKeys, TheThresholdDecides) {
  const SyntheticRun run = planted_run({{0, 0, 0, 0, 0.6}, {0, 0, 0, 40, 0.2}});
  EXPECT_EQ(sinks_of(run).keys.size(), 1u);
  EXPECT_EQ(sinks_of(run, 0.2).keys.size(), 2u);
  EXPECT_EQ(sinks_of(run, 0.1).keys.size(), 2u);
  EXPECT_EQ(sinks_of(run, 0.7).keys.size(), 0u);
  EXPECT_DOUBLE_EQ(sinks_of(run, 0.2).mass_of_sinks.at(0, 0, 0, 0), 0.4);
  EXPECT_DOUBLE_EQ(sinks_of(run).mass_of_sinks.at(0, 0, 0, 0), 0.3);
  // The sink mass knows no threshold.
  for (const double threshold : {0.1, 0.3, 0.7})
    EXPECT_DOUBLE_EQ(sinks_of(run, threshold).mass.at(0, 0, 0, 0), 0.4) << threshold;
  for (const double wrong : {0.05, 1.5, std::nan("")})
    EXPECT_THAT([&] { sinks_of(run, wrong); }, ThrowsMessage<InvalidArgument>(HasSubstr("from 0.1 to 1"))) << wrong;
}

TEST(SinkKeys, AGroupHoldsTheWeakerKeysOfItsTextToo) {
  const SinkKeys sinks = sinks_of(planted_run(
      {{0, 1, 0, 10, 0.4}, {0, 1, 0, 20, 0.2}, {0, 1, 1, 20, 0.2}, {1, 1, 0, 30, 0.2}, {0, 2, 0, 10, 0.2}}));
  ASSERT_EQ(sinks.groups.size(), 2u);
  EXPECT_EQ(sinks.groups.back().layer, 6);
  EXPECT_FALSE(sinks.groups.back().has_sink);
  const SinkGroup& group = sinks.groups.front();
  EXPECT_TRUE(group.has_sink);
  EXPECT_EQ(group.layer, 5);
  EXPECT_EQ(group.text, "\u2581");
  EXPECT_EQ(group.token_class, TokenClass::space);
  EXPECT_EQ(group.count, 3);
  EXPECT_EQ(group.chunks, 2);
  ASSERT_EQ(group.positions.size(), 2u);
  EXPECT_THAT(group.positions[0].positions, ElementsAre(10, 20));
  EXPECT_THAT(group.positions[1].positions, ElementsAre(30));
  EXPECT_NEAR(group.mass[0], (0.2 + 0.1 + 0.1) / 2, 1e-12);  // means over both chunks
  EXPECT_NEAR(group.mass[1], 0.1 / 2, 1e-12);
  EXPECT_DOUBLE_EQ(group.value_norm_ratio, 0.25);
  EXPECT_DOUBLE_EQ(group.stream_ratio, 6.5);
}

/// With few queries a key gets some weight from each by chance: it has to have more than that.
TEST(SinkKeys, AKeyCountsFromOneByTheRootOfItsQueriesOn) {
  EXPECT_DOUBLE_EQ(min_counted_mean(16), 0.25);
  EXPECT_DOUBLE_EQ(min_counted_mean(64), 0.125);
  EXPECT_DOUBLE_EQ(min_counted_mean(100), 0.1);
  EXPECT_DOUBLE_EQ(min_counted_mean(8192), 0.1);
  SyntheticRun run = planted_run({{0, 0, 0, 0, 0.12}, {0, 0, 1, 0, 0.13}, {0, 1, 0, 0, 0.2}, {0, 1, 1, 0, 0.24}});
  run.attention = {"global", "window:18", "global"};
  const SinkKeys sinks = sinks_of(run);
  EXPECT_EQ(sinks.mass.at(0, 0, 0, 0), 0);  // 1 / sqrt(64) = 0.125
  EXPECT_DOUBLE_EQ(sinks.mass.at(0, 0, 0, 1), 0.065);
  EXPECT_EQ(sinks.mass.at(0, 0, 1, 0), 0);  // 1 / sqrt(18) = 0.236
  EXPECT_DOUBLE_EQ(sinks.mass.at(0, 0, 1, 1), 0.12);
  EXPECT_EQ(sinks.counted.size(), 2u);
  // A lower threshold lists the key, and does not count it.
  const SinkKeys listed = sinks_of(run, 0.11);
  EXPECT_EQ(listed.keys.size(), 4u);
  EXPECT_EQ(listed.mass.at(0, 0, 0, 0), 0);
}

TEST(SinkKeys, AFullListMakesTheMassALowerBound) {
  std::vector<Plant> plants;
  for (std::int64_t position = 0; position < 16; ++position) plants.push_back({0, 1, 0, position, 0.14});
  for (std::int64_t position = 0; position < 15; ++position) plants.push_back({0, 1, 1, position, 0.14});
  const SinkKeys sinks = sinks_of(planted_run(plants));
  EXPECT_EQ(sinks.full_heads, 1);
  const SinkMass full = sinks.mass_of(sinks.lengths.front(), 1, 0), whole = sinks.mass_of(sinks.lengths.front(), 1, 1);
  EXPECT_NEAR(full.value, 16 * 0.07 / 2, 1e-12);  // in one of two chunks
  EXPECT_TRUE(full.at_least);
  EXPECT_NEAR(whole.value, 15 * 0.07 / 2, 1e-12);
  EXPECT_FALSE(whole.at_least);
  EXPECT_EQ(sinks.mass_of(sinks.lengths.front(), 2, 0).value, 0);
}

TEST(SinkKeys, SharesByLayerAndClass) {
  const SinkKeys sinks =
      sinks_of(planted_run({{0, 0, 0, 0, 0.8}, {1, 0, 0, 0, 0.8}, {0, 2, 1, 40, 0.4}, {0, 1, 1, 40, 0.12}}));
  ASSERT_EQ(sinks.shares.size(), 1u);
  const SinkShares& shares = sinks.shares.front();
  EXPECT_NEAR(shares.total, (0.4 + 0.4 + 0.2) / 12, 1e-12);  // 2 chunks of 3 layers of 2 heads
  EXPECT_NEAR(shares.by_layer[0], 0.8 / 4, 1e-12);
  EXPECT_NEAR(shares.by_layer[1], 0, 1e-12);
  EXPECT_NEAR(shares.by_layer[2], 0.2 / 4, 1e-12);
  EXPECT_NEAR(shares.by_class.at(TokenClass::bos), 0.8 / 12, 1e-12);
  EXPECT_NEAR(shares.by_class.at(TokenClass::space), 0.2 / 12, 1e-12);
  EXPECT_EQ(shares.by_class.at(TokenClass::digit), 0);
  EXPECT_EQ(shares.keys.at(TokenClass::bos), 2);
  EXPECT_EQ(shares.chunks.at(TokenClass::bos), 2);
  EXPECT_EQ(shares.chunks.at(TokenClass::space), 1);
  EXPECT_EQ(shares.sink_heads, 2);
  EXPECT_EQ(shares.early_heads, 0);
}

TEST(SinkKeys, ALifeIsOfOnePositionInOneChunk) {
  const SinkKeys sinks =
      sinks_of(planted_run({{0, 0, 0, 40, 0.4}, {0, 0, 1, 40, 0.4}, {0, 2, 0, 40, 0.4}, {1, 1, 0, 40, 0.4}}));
  ASSERT_EQ(sinks.lives.size(), 2u);
  EXPECT_EQ(sinks.lives[0].sample, 0);
  EXPECT_THAT(sinks.lives[0].layers, ElementsAre(4, 6));
  EXPECT_EQ(sinks.lives[1].sample, 1);
  EXPECT_THAT(sinks.lives[1].layers, ElementsAre(5));
}

TEST(SinkKeys, AWordIsRareWhereItIsASinkOnce) {
  SyntheticRun run = planted_run({{0, 0, 0, 10, 0.4}, {0, 1, 1, 10, 0.4}, {0, 0, 0, 20, 0.4}, {1, 0, 0, 30, 0.4}});
  run.text = [](const runfile::ShardKey&, std::int64_t position) {
    return std::string(position == 10 ? " Walder" : " the");
  };
  const SinkKeys sinks = sinks_of(run);
  ASSERT_EQ(sinks.keys.size(), 4u);
  for (const SinkKey& key : sinks.keys)
    EXPECT_EQ(key.token_class, key.position == 10 ? TokenClass::rare : TokenClass::common) << key.position;
}

TEST(SinkKeys, TokensWithoutATextAreGroupedById) {
  SyntheticRun run = planted_run({{0, 0, 0, 0, 0.4}, {0, 0, 0, 20, 0.4}, {0, 0, 0, 30, 0.4}});
  run.text = [](const runfile::ShardKey&, std::int64_t) { return std::string(); };
  run.bos = std::nullopt;
  run.bos_policy = "never";
  const SinkKeys sinks = sinks_of(run);
  ASSERT_EQ(sinks.groups.size(), 2u);
  EXPECT_EQ(sinks.groups[0].token, 30);
  EXPECT_EQ(sinks.groups[0].count, 2);
  EXPECT_EQ(sinks.groups[0].token_class, TokenClass::common);
  EXPECT_EQ(label_of(sinks.groups[0].text, sinks.groups[0].token), "token 30");
  EXPECT_EQ(label_of("a\x1b[31m\xE2", 7), "\"a\\x1b[31m\\xe2\"");
}

TEST(SinkKeys, AnOlderRunHasThoseOfItsFirstKeys) {
  SyntheticRun run = planted_run({});
  run.version = 3;
  run.attention = {"global", "window:32", "window:8"};
  run.value = [](const CellKey& key) -> std::optional<double> {
    if (key.name == "summary/column_mean") return key.last == 3 ? 0.2 : 0.01;
    if (key.name == "summary/first_mass") return 0.05;
    return std::nullopt;
  };
  const SinkKeys sinks = sinks_of(run);
  EXPECT_TRUE(sinks.first_keys_only);
  // In the window of 32 the 61 queries from key 3 on see it 32 times: its mean is 0.2 * 61 / 32.
  ASSERT_EQ(sinks.keys.size(), 4u);
  for (const SinkKey& key : sinks.keys) {
    EXPECT_EQ(key.layer, 5);
    EXPECT_EQ(key.position, 3);
    EXPECT_EQ(key.token, -1);
    EXPECT_EQ(key.queries, 32);
    EXPECT_NEAR(key.column_mean, 0.2 * 61 / 32, 1e-12);
    EXPECT_TRUE(std::isnan(key.value_norm_ratio));
  }
  EXPECT_DOUBLE_EQ(sinks.mass.at(0, 0, 1, 0), 0.05);
  EXPECT_DOUBLE_EQ(sinks.mass.at(0, 0, 0, 0), 0.05);  // a mean of 0.2 is no sink, and counts
  EXPECT_EQ(sinks.mass_of_sinks.at(0, 0, 0, 0), 0);
  EXPECT_TRUE(std::isnan(sinks.mass.at(0, 0, 2, 0)));  // no key of this window is seen by 16 queries
  const OrderedJson json = to_json(sinks).at("sinks").at(0);
  EXPECT_TRUE(json.at("token").is_null());
  EXPECT_TRUE(json.at("stream_ratio").is_null());
}

TEST(SinkKeys, AChunkOfFewerThan16TokensCannotHaveSinks) {
  SyntheticRun run = planted_run({});
  run.lengths = {8};
  const SinkKeys sinks = sinks_of(run);
  EXPECT_TRUE(sinks.keys.empty());
  EXPECT_TRUE(std::isnan(sinks.mass.at(0, 0, 0, 0)));
  EXPECT_TRUE(std::isnan(sinks.shares.front().total));
}

TEST(SinkKeys, JsonHasTheseKeys) {
  const OrderedJson json = to_json(sinks_of(planted_run({{1, 2, 1, 40, 0.35}})));
  EXPECT_EQ(json.dump(),
            "{\"sinks\":[{\"length\":64,\"sample\":1,\"layer\":6,\"head\":1,\"position\":40,\"token\":30,\"text\":"
            "\"\u2581\",\"column_mean\":0.35,\"value_norm_ratio\":0.25,\"stream_ratio\":6.5}]}");
}

/// What sink_keys() says of a run with one planted key, one of whose numbers is replaced.
std::string refusal_with(std::string_view name, double value) {
  SyntheticRun run = planted_run({{0, 0, 0, 40, 0.35}, {0, 0, 0, 45, 0.35}});
  const auto planted = run.value;
  run.value = [=](const CellKey& key) -> std::optional<double> {
    if (key.name == name && key.sample == 0 && key.layer == 0 && key.head == 0 && key.last == 1) return value;
    return planted(key);
  };
  try {
    sinks_of(run);
    return "accepted";
  } catch (const InvalidArgument& error) {
    return error.what();
  }
}

TEST(SinkKeys, WhatAFileClaimsIsChecked) {
  EXPECT_EQ(refusal_with("sinks/position", 45), "accepted");
  EXPECT_EQ(refusal_with("sinks/position", 63), "accepted");
  EXPECT_THAT(
      refusal_with("sinks/position", 64),
      HasSubstr("/sinks at length 64, sample 0, layer 4, head 0: position 64 is not from 0 to 63; the file is"));
  EXPECT_THAT(refusal_with("sinks/position", 0x1p52), HasSubstr("is not from 0 to 63"));
  EXPECT_THAT(refusal_with("sinks/position", -1), HasSubstr("has a column mean and no position"));
  EXPECT_THAT(refusal_with("sinks/position", 40), HasSubstr("position 40 stands twice"));
  EXPECT_THAT(refusal_with("sinks/token", -1), HasSubstr("token -1 is not from 0"));
  EXPECT_THAT(refusal_with("sinks/token", 0x1p31), HasSubstr("token 2147483648 is not"));
  EXPECT_THAT(refusal_with("sinks/queries", 15), HasSubstr("queries 15 is not from 16 to 64"));
  EXPECT_THAT(refusal_with("sinks/column_mean", std::nan("")), HasSubstr("position 45 has the means nan"));
  EXPECT_THAT(refusal_with("sinks/column_mean", 7), HasSubstr("has the means 7"));
  EXPECT_THAT(refusal_with("sinks/second_half_mean", -0.5), HasSubstr("has the means 0.35, -0.5"));
}

TEST(SinkKeys, ARunWithoutStatisticsSaysSo) {
  SyntheticRun run = planted_run({});
  run.statistics = false;
  EXPECT_THAT([&] { sinks_of(run); }, ThrowsMessage<InvalidArgument>(HasSubstr("no attention statistics")));
}

TEST(ShortKeys, TheStrongestShortValuedKeyOfEachHead) {
  const TemporaryFolder folder;
  SyntheticRun run =
      planted_run({{0, 0, 0, 0, 0.5}, {0, 0, 0, 40, 0.2}, {1, 0, 0, 40, 0.4}, {0, 1, 1, 20, 0.6}, {0, 2, 0, 30, 0.2}});
  const auto planted = run.value;
  run.value = [planted](const CellKey& key) -> std::optional<double> {
    // the values of layer 1 are long
    if (key.name == "sinks/value_norm_ratio" && key.layer == 1) return key.last == 0 ? 0.9 : std::nan("");
    return planted(key);
  };
  const auto keys = short_keys(testing::write_run(folder.path(), run));
  ASSERT_TRUE(keys) << keys.reason();
  ASSERT_EQ(keys->size(), 2u);
  const ShortKey& first = keys->front();
  EXPECT_EQ(first.layer, 4);
  EXPECT_EQ(first.head, 0);
  EXPECT_EQ(first.chunks, 2);
  EXPECT_EQ(first.all_chunks, 2);
  EXPECT_EQ(first.elsewhere, 1);
  EXPECT_DOUBLE_EQ(first.mass, (0.25 + 0.2) / 2);
  EXPECT_DOUBLE_EQ(first.value_norm_ratio, 0.25);
  EXPECT_EQ(keys->back().layer, 6);  // a stored key counts below the threshold too
  EXPECT_EQ(keys->back().token, "\"\u2581\"");
}

TEST(ShortKeys, AnOlderRunSaysWhatItLacks) {
  const TemporaryFolder folder;
  SyntheticRun run = planted_run({});
  run.version = 3;
  EXPECT_THAT(short_keys(testing::write_run(folder.path(), run)).reason(), HasSubstr("the run has no /sinks"));
}

TEST(SinkVsK, TotalSinkMassCountsKeysThatAWindowLeaves) {
  const TemporaryFolder folder;
  SyntheticRun run = planted_run({{0, 1, 0, 40, 0.4}, {1, 1, 0, 40, 0.8}, {0, 0, 1, 0, 0.5}});
  run.attention = {"global", "window:20", "window:8"};
  const SinkVsK result = sink_vs_k(testing::write_run(folder.path(), run));
  ASSERT_EQ(result.points.size(), 6u);
  EXPECT_FALSE(result.first_keys_only);
  EXPECT_DOUBLE_EQ(result.points[1].total_mass, 0.125);  // half of 0.5, in one of two chunks
  EXPECT_DOUBLE_EQ(result.points[2].total_mass, 0.3);
  EXPECT_TRUE(result.points[2].set_apart);
  EXPECT_EQ(result.points[3].total_mass, 0);
  EXPECT_TRUE(std::isnan(result.points[4].total_mass));
  EXPECT_NEAR(*result.total_mass, (0.125 + 0.3) / 4, 1e-12);
  ASSERT_TRUE(result.total_correlations[0]);
  EXPECT_EQ(result.total_correlations[0]->pooled.points, 4u);
  EXPECT_EQ(result.correlations[0]->pooled.points, 2u);  // BOS mass: the global layer alone
  EXPECT_EQ(to_json(result).at("correlations_with_total_sink_mass").at("kalman_gain").at("pooled").at("points"), 4);
}

TEST(TokenClass, ByText) {
  const auto expect = [](TokenClass expected, std::initializer_list<const char*> texts) {
    for (const char* text : texts) EXPECT_EQ(class_of_text(text), expected) << text;
  };
  expect(TokenClass::space, {" ", "\u2581", "\u2581\u2581\u2581", "\t", "\u00a0"});
  expect(TokenClass::newline, {"\n", "\r\n", " \n\n", "\u2028"});
  expect(TokenClass::delimiter, {".", " ,", "\u2581(", "...", "\u3002", "\u2013", "</s>", "<|endoftext|>", "<eos>"});
  expect(TokenClass::digit, {"7", " 2008", "\u25811"});
  expect(TokenClass::common, {"", "the", "\u2581the", "a1", "1st", "<0xE2>", "< a>", "<a><b>", "\x1b", "\xE2\x96",
                              "\u00e9", "<script>alert(1)</script>"});
}

}  // namespace sink_keys_test
}  // namespace gainlens::analyses
