#include "analyses/verdicts.h"

#include "analyses/synthetic_run.h"
#include "core/error.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gainlens::analyses {
namespace {

using gainlens::testing::CellKey;
using gainlens::testing::SyntheticRun;
using gainlens::testing::TemporaryFolder;
using gainlens::testing::write_run;
using ::testing::HasSubstr;

struct Planted {
  double gain_slope = 1;           ///< slope of K over the heads; the BOS mass rises over the heads
  double without_first_slope = 1;  ///< slope of K without key 0
  double scaled_slope = 1;         ///< slope of scaled K, second half
  double gate_change = 0;          ///< change of logit(gate) from 16 to 64 tokens
  double gate_noise = 0.001;       ///< noise of logit(gate) from chunk to chunk
};

/// Eight layers of four heads, four chunks.
SyntheticRun planted_run(const Planted& planted) {
  SyntheticRun run;
  run.lengths = {16, 64};
  run.samples = 4;
  run.layers = 8;
  run.heads = run.kv_heads = 4;
  run.value = [planted](const CellKey& key) -> std::optional<double> {
    const auto head = static_cast<double>(key.head);
    const double scatter = std::sin(7.0 * static_cast<double>(key.sample) + 3.0 * static_cast<double>(key.length));
    if (key.name == "summary/bos_mass") return 0.01 + 0.02 * head;
    if (key.name == "summary/kalman_gain_scaled_half") return 0.6 + 0.02 * planted.scaled_slope * head;
    if (key.name.starts_with("summary/kalman_gain") && !key.name.ends_with("_var")) {
      return 0.6 + 0.02 * planted.gain_slope * head + (key.length == 64 ? 0.05 : 0.0);
    }
    if (key.name == "summary/without_first_kalman_gain") return 0.6 + 0.02 * planted.without_first_slope * head;
    if (key.name == "summary/observation_precision") return (key.length == 64 ? 20.0 : 10.0) * (1 + 0.01 * scatter);
    if (key.name == "summary/gate") {
      const double logit = (key.length == 64 ? planted.gate_change : 0.0) + planted.gate_noise * scatter;
      return 1 / (1 + std::exp(-logit));
    }
    return std::nullopt;
  };
  return run;
}

Verdicts verdicts_of(const SyntheticRun& run) {
  const TemporaryFolder folder;
  const auto reader = write_run(folder.path() / "run", run);
  const Options options;
  return verdicts(context(reader, options), context_by_attention(reader, options), gain_theory(reader, options),
                  sink_vs_k(reader, options));
}

const Prediction& sink(const Verdicts& verdicts) {
  return verdicts.predictions.at(0);
}
const Claim& evidence(const Verdicts& verdicts) {
  return verdicts.predictions.at(1).claims.at(0);
}
const Claim& theory(const Verdicts& verdicts) {
  return verdicts.predictions.at(1).claims.at(1);
}
const Claim& gate(const Verdicts& verdicts) {
  return verdicts.predictions.at(1).claims.at(2);
}

TEST(Verdicts, SinkPredictionNeedsItsControl) {
  const Verdicts both = verdicts_of(planted_run({}));
  EXPECT_EQ(sink(both).ruling, Ruling::supported) << sink(both).reason;
  EXPECT_THAT(sink(both).claims[0].decisive, HasSubstr("block permutation: p = 0.0001"));
  const Verdicts coupled = verdicts_of(planted_run({.without_first_slope = -1}));
  EXPECT_EQ(sink(coupled).ruling, Ruling::not_shown);
  EXPECT_THAT(sink(coupled).reason, HasSubstr("but arithmetic alone can cause this; K without key 0: negative"));
  const Verdicts falls = verdicts_of(planted_run({.gain_slope = -1, .without_first_slope = -1, .scaled_slope = -1}));
  EXPECT_EQ(sink(falls).ruling, Ruling::contradicted) << sink(falls).reason;
  EXPECT_THAT(sink(falls).reason, HasSubstr("heads with more BOS mass have the smaller K, and K without key 0"));
  for (const double slope : {0.0, 1.0}) {  // arithmetic alone can also make K fall, so the control must fall too
    const Verdicts alone =
        verdicts_of(planted_run({.gain_slope = -1, .without_first_slope = slope, .scaled_slope = -1}));
    EXPECT_EQ(sink(alone).ruling, Ruling::not_shown);
    EXPECT_THAT(sink(alone).reason, HasSubstr("smaller K, but arithmetic alone can cause this; K without key 0: "));
  }
}

TEST(Verdicts, ASignThatHangsOnTheScaleOfTheValuesIsNotShown) {
  const Verdicts rises = verdicts_of(planted_run({.scaled_slope = -1}));
  EXPECT_EQ(sink(rises).ruling, Ruling::not_shown);
  EXPECT_THAT(sink(rises).reason,
              HasSubstr("larger K, but the sign depends on the scale of the values; scaled K: negative"));
  const Verdicts falls = verdicts_of(planted_run({.gain_slope = -1, .without_first_slope = -1}));
  EXPECT_EQ(sink(falls).ruling, Ruling::not_shown);
  EXPECT_THAT(sink(falls).reason,
              HasSubstr("smaller K, but the sign depends on the scale of the values; scaled K: positive"));
  // A scaled K that shows nothing does not contradict the two others that do. Its decision is printed in any case.
  const Verdicts silent = verdicts_of(planted_run({.scaled_slope = 0}));
  EXPECT_EQ(sink(silent).ruling, Ruling::supported) << sink(silent).reason;
  EXPECT_THAT(sink(silent).claims[0].decisive, HasSubstr("; scaled K: not decidable"));
}

TEST(Verdicts, NoRelationIsNotShownWithItsP) {
  SyntheticRun run = planted_run({});
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

TEST(Verdicts, OneKvHeadAndFewLayersDecideNothing) {
  SyntheticRun run = planted_run({});
  run.kv_heads = 1;
  const Verdicts found = verdicts_of(run);
  EXPECT_EQ(sink(found).ruling, Ruling::not_decidable);
  EXPECT_THAT(sink(found).reason, HasSubstr("at least 2 KV heads"));
  EXPECT_THAT(sink(found).reason, HasSubstr("a circular shift of the layers decides nothing"));
  EXPECT_THAT(sink(found).claims[0].naive, HasSubstr("p = "));
}

TEST(Verdicts, ACommonDriftWithDepthDecidesNothing) {
  SyntheticRun run = planted_run({});
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

TEST(Verdicts, AModelWithoutASinkSaysNothingAboutSinks) {
  SyntheticRun run = planted_run({});
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

TEST(Verdicts, ARunThatLookedEverywhereCountsSinksOnEveryKey) {
  SyntheticRun run = planted_run({});
  const TemporaryFolder folder;
  const auto reader = write_run(folder.path() / "run", run);
  const SinkVsK sinks = sink_vs_k(reader);
  SinkKeys keys{0.3, false, usable_lengths(reader), {}, {}, {}, {}, Cells::of(reader, std::vector<double>(2 * 4 * 32)),
                0};
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

TEST(Verdicts, AModelThatNeverSeesBosHasNoSinkOnIt) {
  SyntheticRun run = planted_run({});
  run.attention.assign(8, "window:4");
  const Verdicts found = verdicts_of(run);
  EXPECT_EQ(sink(found).ruling, Ruling::not_decidable);
  EXPECT_THAT(sink(found).reason, HasSubstr("BOS is outside the window of every layer"));
}

TEST(Verdicts, SinksAtThePublishedLengthStandBesideTheLongOnes) {
  SyntheticRun run = planted_run({});
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

/// Four layers with a window of 32 keys and four without. ln lambda_obs rises by `filling` from 16 to 64 tokens and by
/// `windowed` from 64 to 256 in the former, and by `global` at each step in the latter.
SyntheticRun windowed_run(double filling, double windowed, double global) {
  SyntheticRun run = planted_run({});
  run.lengths = {16, 64, 256};
  run.nested = true;
  run.attention = {"window:32", "window:32", "global", "global", "window:32", "window:32", "global", "global"};
  run.value = [=](const CellKey& key) -> std::optional<double> {
    if (key.name != "summary/observation_precision") return std::nullopt;
    const double noise = 0.01 * std::sin(7.0 * static_cast<double>(key.sample) + static_cast<double>(key.length));
    const double steps = key.length == 16 ? 0 : key.length == 64 ? 1 : 2;
    const bool is_global = key.layer % 4 >= 2;
    return 10 * std::exp(noise + (is_global ? steps * global : (steps > 0 ? filling : 0) + (steps > 1 ? windowed : 0)));
  };
  return run;
}

TEST(Verdicts, AWindowThatFillsUpIsNoGrowth) {
  const Verdicts found = verdicts_of(windowed_run(0.5, 0, 0));
  EXPECT_EQ(evidence(found).ruling, Ruling::not_shown) << evidence(found).reason;
  EXPECT_THAT(evidence(found).reason,
              HasSubstr("global layers: the interval of the change of ln lambda_obs contains 0"));
  EXPECT_THAT(evidence(found).reason, HasSubstr("window:32 layers: not shown"));
  EXPECT_THAT(evidence(found).measurement, HasSubstr("global layers, 16 to 256 tokens: "));
  EXPECT_THAT(evidence(found).measurement, HasSubstr("window:32 layers, 64 to 256 tokens: "));
  EXPECT_THAT(evidence(found).measurement, HasSubstr("set apart: 16 (the window of 32 keys is not full)"));
}

TEST(Verdicts, GlobalLayersDecideOnGrowth) {
  const Verdicts grows = verdicts_of(windowed_run(0.5, -0.3, 0.2));
  EXPECT_EQ(evidence(grows).ruling, Ruling::supported) << evidence(grows).reason;
  EXPECT_THAT(evidence(grows).reason, HasSubstr("window:32 layers: contradicted (ln lambda_obs falls)"));
  const Verdicts windows = verdicts_of(windowed_run(0.5, 0.3, -0.2));
  EXPECT_EQ(evidence(windows).ruling, Ruling::contradicted) << evidence(windows).reason;
}

TEST(Verdicts, OfOneKindOnlyFullWindowsCount) {
  SyntheticRun run = windowed_run(0.5, 0, 0);
  run.attention.assign(8, "window:32");
  run.value = windowed_run(0.5, 0, 0.5).value;  // layers 6 and 7, the deep ones, rise at each step
  EXPECT_EQ(evidence(verdicts_of(run)).ruling, Ruling::supported);
  run.lengths = {16, 64};
  const Verdicts one = verdicts_of(run);
  EXPECT_EQ(evidence(one).ruling, Ruling::not_decidable);
  EXPECT_EQ(evidence(one).reason, "growth can be judged at 1 of 2 lengths, and takes two");
  run.attention.assign(8, "window:64");  // as long as the longest chunk: it hides no key
  EXPECT_EQ(evidence(verdicts_of(run)).ruling, Ruling::supported);
}

TEST(Verdicts, LengthsBeyondTheModelsPositionsAreSetApart) {
  SyntheticRun run = planted_run({});
  run.max_positions = 32;
  const Verdicts found = verdicts_of(run);
  EXPECT_EQ(evidence(found).ruling, Ruling::not_decidable);
  EXPECT_THAT(evidence(found).measurement, HasSubstr("set apart: 64 (beyond the model's 32 positions)"));
  EXPECT_EQ(gate(found).ruling, Ruling::supported);
  EXPECT_THAT(gate(found).reason, HasSubstr("among the lengths are some beyond the model's positions: 64"));
}

TEST(Verdicts, TheSignIsThatOfWhatTheSlotsDoNotExplain) {
  // BOS mass and K both rise from the first to the second head of every KV group. Apart from that, they are opposed.
  SyntheticRun run = planted_run({});
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

TEST(Verdicts, FlatGateIsShownNotAssumed) {
  EXPECT_EQ(gate(verdicts_of(planted_run({}))).ruling, Ruling::supported);
  const Verdicts opens = verdicts_of(planted_run({.gate_change = 0.3})),
                 closes = verdicts_of(planted_run({.gate_change = -0.3}));
  EXPECT_EQ(gate(opens).ruling, Ruling::contradicted);
  EXPECT_THAT(gate(opens).reason, HasSubstr("logit(gate) changes by more than 0.1 at 64 tokens: 95% interval [+0.29"));
  EXPECT_EQ(gate(closes).ruling, Ruling::contradicted);
  const Verdicts noisy = verdicts_of(planted_run({.gate_noise = 0.5}));
  EXPECT_EQ(gate(noisy).ruling, Ruling::not_shown) << gate(noisy).decisive;
}

TEST(Verdicts, AChangeWithinReachOfTheMarginContradictsNothing) {
  // The change is clearly not 0, and its 95% interval holds the margin of 0.1.
  const Verdicts found = verdicts_of(planted_run({.gate_change = 0.11, .gate_noise = 0.02}));
  EXPECT_EQ(gate(found).ruling, Ruling::not_shown) << gate(found).decisive;
  EXPECT_EQ(gate(found).reason, "logit(gate) changes at 64 tokens, but is not shown to change by more than 0.1");
}

TEST(Verdicts, FlatMeansFlatAtEveryLength) {
  SyntheticRun run = planted_run({});
  run.lengths = {16, 32, 64};
  const auto planted_value = run.value;
  run.value = [planted_value](const CellKey& key) -> std::optional<double> {
    if (key.name == "summary/gate" && key.length == 32) return 0.7;
    return planted_value(key);
  };
  const Verdicts found = verdicts_of(run);
  EXPECT_EQ(gate(found).ruling, Ruling::contradicted);
  EXPECT_THAT(gate(found).reason, HasSubstr("more than 0.1 at 32 tokens"));
  run.missing = {{64, 0}, {64, 1}, {64, 2}};  // the longest length has no test, so the result at 32 tokens counts
  EXPECT_EQ(gate(verdicts_of(run)).ruling, Ruling::contradicted);
  run.value = planted_value;
  EXPECT_EQ(gate(verdicts_of(run)).ruling, Ruling::not_decidable);
}

TEST(Verdicts, PairsOfUnlikeTextsAreNamed) {
  constexpr std::string_view caveat = "lengths compared on partly different text";
  SyntheticRun run = planted_run({});
  const Verdicts apart = verdicts_of(run);
  for (const Claim& claim : {evidence(apart), gate(apart)}) {
    EXPECT_EQ(claim.ruling, Ruling::supported);
    EXPECT_THAT(claim.decisive, HasSubstr(caveat));
    EXPECT_THAT(claim.reason, HasSubstr(caveat));
  }
  run.nested = true;
  const Verdicts nested = verdicts_of(run);
  for (const Claim& claim : {evidence(nested), gate(nested)}) {
    EXPECT_EQ(claim.ruling, Ruling::supported);
    EXPECT_THAT(claim.decisive + claim.reason, ::testing::Not(HasSubstr(caveat)));
  }
}

TEST(Verdicts, OneLengthHasNoChange) {
  SyntheticRun run = planted_run({});
  run.lengths = {64};
  const Verdicts found = verdicts_of(run);
  for (const Claim& claim : {evidence(found), gate(found)}) {
    EXPECT_EQ(claim.ruling, Ruling::not_decidable);
    EXPECT_EQ(claim.reason, "only one length has a complete chunk; a change needs a second one");
    EXPECT_EQ(claim.decisive.find("not known"), std::string::npos) << claim.decisive;
  }
}

TEST(Verdicts, TheoryIsTestedOnUnseenText) {
  SyntheticRun follows;  // K follows from n_eff and S
  follows.lengths = {1024, 8192};
  follows.samples = 4;
  const Verdicts found = verdicts_of(follows);
  EXPECT_EQ(theory(found).ruling, Ruling::supported) << theory(found).decisive;
  EXPECT_THAT(theory(found).decisive, HasSubstr("margin ±1% (the paper: 0.28%)"));
  SyntheticRun still = follows;
  still.value = [](const CellKey& key) -> std::optional<double> {
    if (key.name == "summary/kalman_gain") return key.length == 1024 ? 0.6 : 0.599;
    return std::nullopt;
  };
  EXPECT_EQ(theory(verdicts_of(still)).ruling, Ruling::contradicted);
  EXPECT_THAT(theory(verdicts_of(still)).reason, HasSubstr("on text like this the formula is off by more than 1%: +"));
}

/// n_eff 1, 3 and S = 0.5 give lambda* in the ratio 1 : 2; K(16) = 0.5 predicts K(64) = 2/3.
SyntheticRun theory_run(double gain, double noise) {
  SyntheticRun run = planted_run({});
  const auto planted_value = run.value;
  run.value = [=](const CellKey& key) -> std::optional<double> {
    if (key.name == "summary/n_eff") return key.length == 16 ? 1.0 : 3.0;
    if (key.name == "summary/residual") return 0.5;
    if (key.name == "summary/kalman_gain")
      return key.length == 16 ? 0.5 : gain + noise * std::sin(5.0 * static_cast<double>(key.sample));
    return planted_value(key);
  };
  return run;
}

TEST(Verdicts, TheoryIsJudgedByItsMarginNotByItsSkill) {
  const Verdicts four = verdicts_of(theory_run(0.64, 0.001));  // error of the theory 4.17%, of the constant 21.9%
  EXPECT_EQ(theory(four).ruling, Ruling::contradicted);
  EXPECT_THAT(theory(four).reason, HasSubstr("off by more than 1%: +4.2"));
  const Verdicts near = verdicts_of(theory_run(0.665, 0.001));
  EXPECT_EQ(theory(near).ruling, Ruling::supported) << theory(near).decisive;
  EXPECT_EQ(theory(near).reason, "on text like this the formula is off by less than 1% at every length");
  const Verdicts noisy = verdicts_of(theory_run(0.665, 0.02));
  EXPECT_EQ(theory(noisy).ruling, Ruling::not_shown) << theory(noisy).decisive;
  EXPECT_THAT(theory(noisy).reason, HasSubstr("not shown to be off by less than 1% at every length"));
}

TEST(Verdicts, TheTheorysMarginIsAnOption) {
  const TemporaryFolder folder;
  const auto reader = write_run(folder.path() / "run", theory_run(0.64, 0.001));
  const Options wide{.theory_margin = 0.1};
  const Verdicts found = verdicts(context(reader, wide), {}, gain_theory(reader, wide), sink_vs_k(reader, wide));
  EXPECT_EQ(theory(found).ruling, Ruling::supported);
  EXPECT_THAT(theory(found).reason, HasSubstr("less than 10%"));
  EXPECT_EQ(to_json(gain_theory(reader, wide))["margin"], 0.1);
  EXPECT_THAT([&] { gain_theory(reader, {.theory_margin = 1}); },
              ::testing::ThrowsMessage<InvalidArgument>(
                  "--theory-margin: 1; it is a share of K above 0 and below 1, such as 0.01 for 1%"));
}

TEST(Verdicts, AConstantThatDoesAsWellIsSaid) {
  SyntheticRun run = theory_run(0.5, 1e-4);
  const auto planted_value = run.value;
  run.value = [planted_value](const CellKey& key) -> std::optional<double> {
    return key.name == "summary/n_eff" ? std::optional(1.0) : planted_value(key);
  };
  EXPECT_EQ(theory(verdicts_of(run)).ruling, Ruling::supported);
  EXPECT_THAT(theory(verdicts_of(run)).reason, HasSubstr("so is a constant K"));
}

TEST(Verdicts, ManyLengthsAreManyChancesToContradict) {
  // p of a change beyond the margin: 0.0496 at 64 tokens, 1 at 32, so 0.099 over both
  const Planted barely{.gate_change = 0.12, .gate_noise = 0.03};
  SyntheticRun run = planted_run(barely);
  run.nested = true;  // paired chunks
  EXPECT_EQ(gate(verdicts_of(run)).ruling, Ruling::contradicted);
  run.lengths = {16, 32, 64};
  const Verdicts two = verdicts_of(run);
  EXPECT_EQ(gate(two).ruling, Ruling::not_shown) << gate(two).reason;
  EXPECT_THAT(gate(two).reason, HasSubstr("logit(gate) changes at 64 tokens (p = "));
  EXPECT_THAT(gate(two).reason, HasSubstr("Holm over 2 lengths), but is not shown to change by more than 0.1"));
}

TEST(Verdicts, ManyClaimsAreManyChancesToContradict) {
  SyntheticRun run = theory_run(2.0 / 3, 1e-4);
  run.nested = true;  // paired chunks
  const SyntheticRun barely = planted_run({.gate_change = 0.12, .gate_noise = 0.03});
  const auto theory_value = run.value, gate_value = barely.value;
  run.value = [=](const CellKey& key) { return key.name == "summary/gate" ? gate_value(key) : theory_value(key); };
  const Verdicts found = verdicts_of(run);
  EXPECT_EQ(gate(found).ruling, Ruling::contradicted);
  EXPECT_EQ(found.predictions[1].ruling, Ruling::not_shown);
  EXPECT_THAT(found.predictions[1].reason,
              HasSubstr("one of 3 claims that could be contradicted, and p = 0.15 after Holm's correction"));
  EXPECT_EQ(to_json(found)[1]["claims"][0]["contradiction_p"], 1);
}

TEST(Verdicts, EvidenceThatGrowsIsSupported) {
  EXPECT_EQ(evidence(verdicts_of(planted_run({}))).ruling, Ruling::supported);
  SyntheticRun falling = planted_run({});
  const auto planted_value = falling.value;
  falling.value = [planted_value](const CellKey& key) -> std::optional<double> {
    if (key.name == "summary/observation_precision")
      return (key.length == 64 ? 9.0 : 10.0) + 0.001 * static_cast<double>(key.sample * key.length);
    return planted_value(key);
  };
  EXPECT_EQ(evidence(verdicts_of(falling)).ruling, Ruling::contradicted);
}

TEST(Verdicts, APredictionIsAsWeakAsItsWorstClaim) {
  SyntheticRun run = theory_run(2.0 / 3, 0);
  const auto theory_value = run.value, gate_value = planted_run({.gate_change = 0.3}).value;
  run.value = [=](const CellKey& key) { return key.name == "summary/gate" ? gate_value(key) : theory_value(key); };
  const Verdicts found = verdicts_of(run);
  EXPECT_EQ(found.predictions[1].ruling, Ruling::contradicted);
  EXPECT_THAT(found.predictions[1].reason, HasSubstr("the trained gate stays flat: logit(gate) changes by more than"));
}

TEST(Verdicts, WithoutAGateItIsNotDecidable) {
  SyntheticRun run = planted_run({});
  run.gated = false;
  const Verdicts found = verdicts_of(run);
  EXPECT_EQ(gate(found).ruling, Ruling::not_decidable);
  EXPECT_EQ(gate(found).reason, "the model has no attention gate");
  EXPECT_NE(found.predictions[1].ruling, Ruling::supported);
}

TEST(Verdicts, TwoChunksDoNotTestTheTheory) {
  SyntheticRun run = planted_run({});
  run.samples = 2;
  EXPECT_EQ(theory(verdicts_of(run)).ruling, Ruling::not_decidable);
  EXPECT_THAT(theory(verdicts_of(run)).reason, HasSubstr("not testable: 2 chunks"));
}

TEST(Verdicts, AnyRunHasAVerdictWithAReason) {
  SyntheticRun bare = planted_run({});
  bare.value = nullptr;
  bare.lengths = {32};
  bare.samples = bare.layers = bare.heads = bare.kv_heads = 1;
  bare.gated = false;
  bare.bos.reset();
  SyntheticRun empty = bare;
  empty.statistics = false;
  for (const SyntheticRun& run : {bare, empty}) {
    const Verdicts found = verdicts_of(run);
    ASSERT_EQ(found.predictions.size(), 3u);
    for (const Prediction& prediction : found.predictions) {
      EXPECT_FALSE(prediction.reason.empty());
      EXPECT_NE(prediction.ruling, Ruling::supported);
      for (const Claim& claim : prediction.claims) {
        for (const std::string* text :
             {&claim.claim, &claim.measurement, &claim.naive, &claim.decisive, &claim.reason}) {
          EXPECT_FALSE(text->empty()) << claim.claim;
          EXPECT_THAT(*text, ::testing::Not(HasSubstr("nan")));
        }
      }
    }
    EXPECT_THAT(sink(found).reason, HasSubstr("no BOS token stands in front"));
  }
}

TEST(Verdicts, TheInterventionIsNotTestedByASweep) {
  const OrderedJson json = to_json(verdicts_of(planted_run({})));
  EXPECT_EQ(json[2]["prediction"], 3);
  EXPECT_EQ(json[2]["verdict"], "not tested by a sweep");
  EXPECT_EQ(json[0]["claims"][0]["verdict"], "supported");
}

}  // namespace
}  // namespace gainlens::analyses
