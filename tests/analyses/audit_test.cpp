#include "analyses/audit.h"

#include "analyses/synthetic_run.h"
#include "runfile/run_folder.h"
#include "runfile/schema.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace gainlens::analyses {
namespace audit_test {

using testing::CellKey;
using ::testing::HasSubstr;
using testing::SyntheticRun;
using testing::TemporaryFolder;
using testing::write_run;

/// Two layers of two heads, one length, one chunk: small enough to check every number by hand.
SyntheticRun small_run() {
  SyntheticRun run;
  run.lengths = {128};
  run.samples = 1;
  run.layers = 2;
  run.heads = 2;
  run.kv_heads = 1;
  run.head_dim = 16;
  return run;
}

Audit audited(const SyntheticRun& run) {
  const TemporaryFolder folder;
  return audit(write_run(folder.path(), run));
}

const Statement& statement(const Audit& audit, const std::string& name) {
  return *std::find_if(audit.statements.begin(), audit.statements.end(),
                       [&](const Statement& s) { return s.name == name; });
}

double number(const Statement& statement, const std::string& name) {
  const auto found = std::find_if(statement.numbers.begin(), statement.numbers.end(),
                                  [&](const Quantity& q) { return q.name == name; });
  return *found->value;
}

// The planted lemma: epsilon 0.15, ||vbar|| 0.5, mu 0.8, delta = 0.5 - 0.35 mass, bound 0.7 mass - 0.3.
TEST(SinkLemma, ByHand) {
  const auto lemma = audited(small_run()).lemma;
  ASSERT_TRUE(lemma);
  ASSERT_EQ(lemma->heads.size(), 4u);
  const LemmaHead& strong = lemma->heads[2];  // layer 1, head 0: mass 0.6
  EXPECT_EQ(strong.layer, 1);
  EXPECT_EQ(strong.head, 0);
  EXPECT_EQ(strong.kv_head, 0);
  EXPECT_DOUBLE_EQ(strong.first_norm, 0.15);
  EXPECT_DOUBLE_EQ(strong.min_norm, 0.8);
  EXPECT_DOUBLE_EQ(strong.others_norm, 0.5);
  EXPECT_DOUBLE_EQ(strong.alignment, 0.625);
  EXPECT_DOUBLE_EQ(strong.estimate_norm, 0.29);
  EXPECT_DOUBLE_EQ(strong.gained_norm, 0.261);
  EXPECT_DOUBLE_EQ(strong.bos_mass, 0.6);
  EXPECT_NEAR(strong.bound, 0.12, 1e-15);
  EXPECT_NEAR(strong.gain_bound, 1 - 0.411 / 0.5, 1e-15);
  EXPECT_NEAR(*strong.slack, 0.48, 1e-15);
  EXPECT_NEAR(strong.slack_min, 0.47, 1e-15);
  EXPECT_EQ(strong.vacuous, 0);
  EXPECT_EQ(strong.gain_violated, 0.25);
  EXPECT_FALSE(strong.set_apart);
  EXPECT_EQ(lemma->heads[3].bound, 0);  // mass 0.2: 0.14 - 0.3
  EXPECT_EQ(*smallest_slack(strong), strong.slack_min);
  EXPECT_GT(lemma->heads[3].slack_min, lemma->heads[3].bos_mass);  // of a negative bound
  EXPECT_EQ(smallest_slack(lemma->heads[3]).reason(), "the bound is negative at every query");
  EXPECT_EQ(lemma->heads[3].slack.reason(), "the bound is vacuous at every query of some length");
}

TEST(SinkLemma, SummaryOverHeads) {
  const auto lemma = audited(small_run()).lemma;
  EXPECT_EQ(lemma->judged, 4u);
  EXPECT_EQ(lemma->violated, 0u);
  EXPECT_EQ(lemma->binding, 1u);
  EXPECT_DOUBLE_EQ(lemma->vacuous, 0.75);
  EXPECT_DOUBLE_EQ(lemma->gain_violated, 0.0625);
  EXPECT_NEAR(*lemma->slack, 0.48, 1e-15);
  EXPECT_NEAR(lemma->slack_min, 0.29, 0.01);  // at a head with mass near 0: 0.3 + 0.3 mass - 0.01
  EXPECT_THAT(lemma->finding, HasSubstr("holds at every query of 4 heads"));
  EXPECT_THAT(lemma->finding, HasSubstr("vacuous (not above 0) at 75.0% of the queries"));
  EXPECT_THAT(lemma->finding, HasSubstr("1 of 4 heads has a bound above 0 at most of its queries."));
  EXPECT_THAT(lemma->finding, HasSubstr("The median of epsilon / mu over heads is 0.19 ("));  // 0.15 / 0.8
}

TEST(SinkLemma, AViolationIsCountedAndCalledOne) {
  SyntheticRun run = small_run();
  run.value = [](const CellKey& key) -> std::optional<double> {
    if (key.name == "summary/sink_bound_slack_min" && key.layer == 0 && key.head == 1) return -0.02;
    return std::nullopt;
  };
  const auto lemma = audited(run).lemma;
  EXPECT_EQ(lemma->violated, 1u);
  EXPECT_DOUBLE_EQ(lemma->slack_min, -0.02);
  EXPECT_THAT(lemma->finding, HasSubstr("broken at 1 of 4 heads, by up to 0.02"));
}

TEST(SinkLemma, RoundingIsNoViolation) {
  SyntheticRun run = small_run();
  run.value = [](const CellKey& key) -> std::optional<double> {
    return key.name == "summary/sink_bound_slack_min" ? std::optional(-1e-6) : std::nullopt;
  };
  EXPECT_EQ(audited(run).lemma->violated, 0u);
}

TEST(SinkLemma, SmallestIsOverChunksAndMeansAreNot) {
  SyntheticRun run = small_run();
  run.samples = 2;
  run.value = [](const CellKey& key) -> std::optional<double> {
    if (key.name == "summary/sink_bound_slack_min") return key.sample == 0 ? 0.5 : 0.1;
    if (key.name == "summary/estimate_norm") return key.sample == 0 ? 1.0 : 2.0;
    return std::nullopt;
  };
  const auto lemma = audited(run).lemma;
  EXPECT_DOUBLE_EQ(lemma->heads[0].slack_min, 0.1);
  EXPECT_DOUBLE_EQ(lemma->heads[0].estimate_norm, 1.5);
}

TEST(SinkLemma, WindowsThatHideKey0AreSetApart) {
  SyntheticRun run = small_run();
  run.attention = {"window:64", "global"};
  const Audit one = audited(run);
  EXPECT_TRUE(one.lemma->heads[0].set_apart);
  EXPECT_EQ(one.lemma->judged, 2u);
  EXPECT_DOUBLE_EQ(one.lemma->vacuous, 0.5);
  EXPECT_THAT(one.notes, ::testing::Contains(HasSubstr("2 heads are excluded")));
  run.attention = {"window:64", "window:8"};
  EXPECT_THAT(audited(run).lemma.reason(), HasSubstr("key 0 is outside the window of every layer"));
}

TEST(SinkLemma, AHeadWithoutNumbersIsLeftOut) {
  SyntheticRun run = small_run();
  run.value = [](const CellKey& key) -> std::optional<double> {
    if (key.name == "summary/sink_alignment" && key.layer == 0) return std::nan("");
    return std::nullopt;
  };
  const Audit one = audited(run);
  EXPECT_EQ(one.lemma->left_out, 2u);
  EXPECT_EQ(one.lemma->heads.size(), 2u);
  EXPECT_THAT(one.notes, ::testing::Contains(HasSubstr("2 heads are left out")));
}

/// A run of the first version of the statistics, which had no datasets of the audit.
runfile::RunReader older_run(const std::filesystem::path& folder) {
  auto request = testing::request_of(small_run());
  request.version = 1;
  auto writer = runfile::RunFolder::open_or_resume(folder, request);
  for (const runfile::ShardKey& key : writer.missing()) {
    runfile::ShardResult result = runfile::blank_result(request, key.length);
    for (const runfile::Group group : runfile::groups) {
      for (auto& [name, array] : runfile::entries(result, group))
        std::fill(array.values.begin(), array.values.end(), 0.5);
    }
    writer.commit(key, result);
  }
  writer.combine();
  return runfile::RunReader::open(folder);
}

TEST(Audit, AnOlderRunSaysWhatItLacks) {
  const TemporaryFolder folder;
  const Audit one = audit(older_run(folder.path()));
  EXPECT_THAT(one.lemma.reason(),
              HasSubstr("the run has no summary/without_first_norm: it was swept with statistics version 1"));
  EXPECT_EQ(statement(one, "value_variance").outcome, Outcome::no_numbers);
  EXPECT_THAT(statement(one, "value_variance").finding, HasSubstr("the run has no values/variance"));
  EXPECT_THAT(statement(one, "unit_gain").finding, HasSubstr("K is 0.500 on average"));  // K is in every run
  EXPECT_THAT(to_json(one).at("lemma").at("reason").get<std::string>(), HasSubstr("sweep again into another folder"));
}

TEST(Statements, UnitGainByHand) {
  SyntheticRun run = small_run();
  run.value = [](const CellKey& key) -> std::optional<double> {
    if (key.name == "summary/kalman_gain") return 0.7 + 0.1 * static_cast<double>(key.layer);
    return std::nullopt;
  };
  const Statement found = statement(audited(run), "unit_gain");
  EXPECT_DOUBLE_EQ(number(found, "gain_mean"), 0.75);
  EXPECT_DOUBLE_EQ(number(found, "gain_min"), 0.7);
  EXPECT_DOUBLE_EQ(number(found, "gain_max"), 0.8);
  EXPECT_EQ(found.finding, "At lambda = 1, K is 0.750 on average over 4 heads; 1 - K ranges from 0.2 to 0.3.");
}

TEST(Statements, AlgebraIsNoFinding) {
  // No number in a run supports or contradicts these statements, not even a K that rounds to 1 or a large S.
  SyntheticRun extreme = small_run();
  extreme.value = [](const CellKey& key) -> std::optional<double> {
    if (key.name == "summary/kalman_gain") return 1.0;
    if (key.name == "summary/residual") return 1e6;
    if (key.name == "summary/without_first_norm") return 1.8;
    return std::nullopt;
  };
  SyntheticRun empty = small_run();
  empty.statistics = false;
  for (const SyntheticRun& run : {small_run(), extreme, empty}) {
    const Audit one = audited(run);
    for (const char* name : {"unit_gain", "prior_fades", "network_size", "layer_size", "five_axes", "alignment"}) {
      EXPECT_EQ(statement(one, name).outcome, Outcome::by_algebra) << name;
      EXPECT_FALSE(statement(one, name).conclusion.empty()) << name;
    }
    EXPECT_NE(statement(one, "value_variance").outcome, Outcome::by_algebra);
  }
  EXPECT_THAT(statement(audited(empty), "unit_gain").finding,
              HasSubstr("No numbers: the run has no summary/kalman_gain. The algebra needs no numbers."));
  EXPECT_EQ(name_of(Outcome::by_algebra), "false by algebra");
}

/// n_eff is 10, 20, 30, 40 at the four heads; S is the same at all heads.
SyntheticRun prior_run(double residual) {
  SyntheticRun run = small_run();
  run.value = [residual](const CellKey& key) -> std::optional<double> {
    if (key.name == "summary/n_eff") return 10.0 * static_cast<double>(2 * key.layer + key.head + 1);
    if (key.name == "summary/residual") return residual;
    return std::nullopt;
  };
  return run;
}

TEST(Statements, PriorSharesByHand) {
  const Audit one = audited(prior_run(1.0 / 16));  // S = sigma0^2
  ASSERT_TRUE(one.prior_shares);
  ASSERT_EQ(one.prior_shares->size(), 4u);
  const PriorShare& last = one.prior_shares->back();
  EXPECT_EQ(last.heads, 1u);
  EXPECT_DOUBLE_EQ(last.n_eff, 40);
  EXPECT_DOUBLE_EQ(last.share, 0.5);  // for every n_eff
  EXPECT_DOUBLE_EQ(one.prior_shares->front().share, 0.5);
  EXPECT_DOUBLE_EQ(last.fading, 1.0 / 41);
  EXPECT_THAT(statement(one, "prior_fades").finding,
              HasSubstr("(40.0 on average) the prior is 50% of S + nu sigma0^2"));
}

TEST(Statements, APriorBesideLargeResidualsIsNegligibleForAnotherReason) {
  const Statement found = statement(audited(prior_run(100)), "prior_fades");
  EXPECT_THAT(found.finding, HasSubstr("This share is small because S = 100 is far above sigma0^2 = 0.0625 in this "
                                       "model, not because n_eff is large"));
}

TEST(Statements, PriorSharesOfFewHeadsAreFewGroups) {
  SyntheticRun run = small_run();
  run.layers = 1;
  run.heads = run.kv_heads = 1;
  EXPECT_EQ(audited(run).prior_shares->size(), 1u);
}

TEST(Statements, ValueVarianceByHand) {
  // Planted 0.02 and 0.04 over layers, 1/d_k = 1/16: ratios 0.32 and 0.64. The audit does not judge how near is near
  // enough.
  const Statement found = statement(audited(small_run()), "value_variance");
  EXPECT_DOUBLE_EQ(number(found, "variance_mean"), 0.03);
  EXPECT_DOUBLE_EQ(number(found, "ratio_min"), 0.32);
  EXPECT_DOUBLE_EQ(number(found, "ratio_median"), 0.48);
  EXPECT_DOUBLE_EQ(number(found, "ratio_max"), 0.64);
  EXPECT_EQ(
      found.finding,
      "The variance of the values is 0.48 times 1/d_k in the median over 2 KV heads, and 0.32 to 0.64 times in single "
      "heads.");
  EXPECT_EQ(found.outcome, Outcome::measured);
  EXPECT_EQ(name_of(found.outcome), "measured, no ruling");
  SyntheticRun wide = small_run();
  wide.head_dim = 256;
  EXPECT_EQ(statement(audited(wide), "value_variance").outcome, Outcome::measured);
}

/// Values of norm 2 at every key except key 0, averages of norm `average`, and an n_eff of 16 without key 0.
SyntheticRun alignment_run(double average) {
  SyntheticRun run = small_run();
  run.value = [average](const CellKey& key) -> std::optional<double> {
    // Bins of two keys. The first bin holds key 0, of norm 4, which must not be counted.
    if (key.name == "values/norm") return key.last == 0 ? 3.0 : 2.0;
    if (key.name == "values/first_norm") return key.last == 0 ? 4.0 : 2.0;
    if (key.name == "summary/without_first_norm") return average;
    if (key.name == "summary/without_first_n_eff") return 16.0;
    return std::nullopt;
  };
  return run;
}

TEST(Statements, AlignmentByHand) {
  const Statement found = statement(audited(alignment_run(0.6)), "alignment");
  EXPECT_DOUBLE_EQ(number(found, "ratio_mean"), 0.3);
  EXPECT_DOUBLE_EQ(number(found, "orthogonal_mean"), 0.25);
  EXPECT_EQ(number(found, "heads_nearer_orthogonal"), 4);
  EXPECT_EQ(number(statement(audited(alignment_run(1.8)), "alignment"), "heads_nearer_orthogonal"), 0);
}

TEST(Statements, ArithmeticNeedsNoNumbers) {
  const Audit one = audited(small_run());
  EXPECT_EQ(number(statement(one, "network_size"), "at_64"), 1057);
  EXPECT_EQ(number(statement(one, "network_size"), "at_attention_width"), 16 * 32 + 33);
  EXPECT_EQ(number(statement(one, "layer_size"), "floats"), 5184);
  EXPECT_NEAR(number(statement(one, "layer_size"), "share"), 5184.0 / 49152, 1e-15);
}

TEST(Statements, WhatASweepCannotShowSaysWhereItCanBe) {
  const Audit one = audited(small_run());
  EXPECT_EQ(statement(one, "user_count").outcome, Outcome::not_measured);
  for (const char* name : {"five_axes", "user_count"})
    EXPECT_THAT(statement(one, name).conclusion, HasSubstr("It can be checked"));
}

TEST(Statements, AHeadWithoutANumberLeavesTheStatementWithoutNumbers) {
  SyntheticRun run = small_run();
  run.value = [](const CellKey& key) -> std::optional<double> {
    if (key.name == "values/variance" && key.layer == 1 && key.head == 0) return std::nan("");
    return std::nullopt;
  };
  const Statement found = statement(audited(run), "value_variance");
  EXPECT_EQ(found.outcome, Outcome::no_numbers);
  EXPECT_EQ(found.finding, "No numbers: values/variance has no finite value at layer 1 head 0.");
}

TEST(Audit, NotesNameWhatIsMissing) {
  SyntheticRun run = small_run();
  run.samples = 3;
  run.bos.reset();
  run.missing = {{128, 1}};
  const Audit one = audited(run);
  EXPECT_FALSE(one.bos);
  EXPECT_THAT(one.notes, ::testing::Contains(HasSubstr("Key 0 is the text's first token")));
  EXPECT_THAT(one.notes, ::testing::Contains(HasSubstr("delta is the norm before the gate")));
  EXPECT_THAT(one.notes, ::testing::Contains("Chunks missing at 128 tokens: 1 of 3."));
}

TEST(Audit, JsonHoldsEveryHeadAndStatement) {
  const OrderedJson json = to_json(audited(small_run()));
  EXPECT_EQ(json.at("lemma").at("heads").size(), 4u);
  EXPECT_NEAR(json.at("lemma").at("heads")[2].at("bound").get<double>(), 0.12, 1e-15);
  EXPECT_TRUE(json.at("lemma").at("heads")[3].at("slack").is_null());
  EXPECT_EQ(json.at("statements").size(), 8u);
  EXPECT_EQ(json.at("statements")[0].at("outcome"), "false by algebra");
  EXPECT_EQ(json.at("prior_shares").size(), 4u);
  EXPECT_EQ(json.at("lengths"), OrderedJson::array({128}));
}

TEST(Audit, RunsWithoutStatisticsHaveNoLemma) {
  SyntheticRun run = small_run();
  run.statistics = false;
  const Audit one = audited(run);
  EXPECT_EQ(one.lemma.reason(), "the run has no summary/without_first_norm");
  EXPECT_EQ(one.prior_shares.reason(), "the run has no summary/n_eff");
}

}  // namespace audit_test
}  // namespace gainlens::analyses
