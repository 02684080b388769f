#include "analyses/verdicts.h"

#include "analyses/planted_verdicts.h"
#include "analyses/synthetic_run.h"
#include "core/error.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gainlens::analyses {
namespace verdicts_test {

using gainlens::testing::CellKey;
using gainlens::testing::SyntheticRun;
using gainlens::testing::TemporaryFolder;
using gainlens::testing::write_run;
using ::testing::HasSubstr;

const Claim& evidence(const Verdicts& verdicts) {
  return verdicts.predictions.at(1).claims.at(0);
}
const Claim& theory(const Verdicts& verdicts) {
  return verdicts.predictions.at(1).claims.at(1);
}
const Claim& gate(const Verdicts& verdicts) {
  return verdicts.predictions.at(1).claims.at(2);
}

/// Four layers with a window of 32 keys and four without. ln lambda_obs rises by `filling` from 16 to 64 tokens and by
/// `windowed` from 64 to 256 in the former, and by `global` at each step in the latter.
SyntheticRun windowed_run(double filling, double windowed, double global) {
  SyntheticRun run = run_to_judge({});
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
  SyntheticRun run = run_to_judge({});
  run.max_positions = 32;
  const Verdicts found = verdicts_of(run);
  EXPECT_EQ(evidence(found).ruling, Ruling::not_decidable);
  EXPECT_THAT(evidence(found).measurement, HasSubstr("set apart: 64 (beyond the model's 32 positions)"));
  EXPECT_EQ(gate(found).ruling, Ruling::supported);
  EXPECT_THAT(gate(found).reason, HasSubstr("among the lengths are some beyond the model's positions: 64"));
}

TEST(Verdicts, FlatGateIsShownNotAssumed) {
  EXPECT_EQ(gate(verdicts_of(run_to_judge({}))).ruling, Ruling::supported);
  const Verdicts opens = verdicts_of(run_to_judge({.gate_change = 0.3})),
                 closes = verdicts_of(run_to_judge({.gate_change = -0.3}));
  EXPECT_EQ(gate(opens).ruling, Ruling::contradicted);
  EXPECT_THAT(gate(opens).reason, HasSubstr("logit(gate) changes by more than 0.1 at 64 tokens: 95% interval [+0.29"));
  EXPECT_EQ(gate(closes).ruling, Ruling::contradicted);
  const Verdicts noisy = verdicts_of(run_to_judge({.gate_noise = 0.5}));
  EXPECT_EQ(gate(noisy).ruling, Ruling::not_shown) << gate(noisy).decisive;
}

TEST(Verdicts, AChangeWithinReachOfTheMarginContradictsNothing) {
  // The change is clearly not 0, and its 95% interval holds the margin of 0.1.
  const Verdicts found = verdicts_of(run_to_judge({.gate_change = 0.11, .gate_noise = 0.02}));
  EXPECT_EQ(gate(found).ruling, Ruling::not_shown) << gate(found).decisive;
  EXPECT_EQ(gate(found).reason, "logit(gate) changes at 64 tokens, but is not shown to change by more than 0.1");
}

TEST(Verdicts, FlatMeansFlatAtEveryLength) {
  SyntheticRun run = run_to_judge({});
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
  SyntheticRun run = run_to_judge({});
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
  SyntheticRun run = run_to_judge({});
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
  SyntheticRun run = run_to_judge({});
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
  SyntheticRun run = run_to_judge(barely);
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
  const SyntheticRun barely = run_to_judge({.gate_change = 0.12, .gate_noise = 0.03});
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
  EXPECT_EQ(evidence(verdicts_of(run_to_judge({}))).ruling, Ruling::supported);
  SyntheticRun falling = run_to_judge({});
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
  const auto theory_value = run.value, gate_value = run_to_judge({.gate_change = 0.3}).value;
  run.value = [=](const CellKey& key) { return key.name == "summary/gate" ? gate_value(key) : theory_value(key); };
  const Verdicts found = verdicts_of(run);
  EXPECT_EQ(found.predictions[1].ruling, Ruling::contradicted);
  EXPECT_THAT(found.predictions[1].reason, HasSubstr("the trained gate stays flat: logit(gate) changes by more than"));
}

TEST(Verdicts, WithoutAGateItIsNotDecidable) {
  SyntheticRun run = run_to_judge({});
  run.gated = false;
  const Verdicts found = verdicts_of(run);
  EXPECT_EQ(gate(found).ruling, Ruling::not_decidable);
  EXPECT_EQ(gate(found).reason, "the model has no attention gate");
  EXPECT_NE(found.predictions[1].ruling, Ruling::supported);
}

TEST(Verdicts, TwoChunksDoNotTestTheTheory) {
  SyntheticRun run = run_to_judge({});
  run.samples = 2;
  EXPECT_EQ(theory(verdicts_of(run)).ruling, Ruling::not_decidable);
  EXPECT_THAT(theory(verdicts_of(run)).reason, HasSubstr("not testable: 2 chunks"));
}

TEST(Verdicts, AnyRunHasAVerdictWithAReason) {
  SyntheticRun bare = run_to_judge({});
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
  const OrderedJson json = to_json(verdicts_of(run_to_judge({})));
  EXPECT_EQ(json[2]["prediction"], 3);
  EXPECT_EQ(json[2]["verdict"], "not tested by a sweep");
  EXPECT_EQ(json[0]["claims"][0]["verdict"], "supported");
}

}  // namespace verdicts_test
}  // namespace gainlens::analyses
