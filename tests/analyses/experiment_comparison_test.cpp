#include "analyses/experiment_comparison.h"

#include "analyses/gain_decisions.h"
#include "analyses/recommender_comparison.h"
#include "runfile/made_experiment_run.h"
#include "runfile/made_recommend_run.h"
#include "support/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace gainlens::analyses {
namespace experiment_comparison_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::made_experiment_run;
using testing::refusal_of;

ExperimentPair pair_of(const runfile::ExperimentRun& run) {
  const auto shared = std::make_shared<const runfile::ExperimentRun>(run);
  std::vector<ExperimentArm> arms = {{"run", shared, 0}, {"run", shared, 1}};
  name_arms(arms);
  return pair_arms(arms, {}).front();
}

const ExperimentOptions few_resamples{.resamples = {.count = 50, .seed = 7}};

/// Users whose hits at 10 are the scores of documents. Each has a target of its own, so that none err together.
runfile::RecommendRun as_recommenders(const runfile::ExperimentRun& run) {
  runfile::RecommendRun made = testing::made_recommend_run(
      {.arms = run.arms, .seeds = run.seeds, .users = run.units.size(), .items = run.units.size()});
  std::iota(made.target.begin(), made.target.end(), 1);
  for (std::size_t i = 0; i < run.results.size(); ++i) {
    std::vector<double>& ranks = made.results[i]->scores.at("rank");
    for (std::size_t unit = 0; unit < ranks.size(); ++unit)
      ranks[unit] = run.results[i]->scores.at("right")[unit] > 0 ? 3 : 30;
  }
  return made;
}

TEST(ExperimentComparison, GivesTheNumbersOfRecommendersWithTheSameScores) {
  const runfile::ExperimentRun run = made_experiment_run();
  const auto recommenders = std::make_shared<const runfile::RecommendRun>(as_recommenders(run));
  RecommenderOptions options;
  options.resamples = few_resamples.resamples;
  const ArmComparison users = compare_arms(ArmPair{{"run", recommenders, 0}, {"run", recommenders, 1}}, options);
  const ExperimentComparison documents = compare_arms(pair_of(run), few_resamples);
  ASSERT_EQ(documents.scores.size(), 2u);
  OrderedJson found = to_json(static_cast<const ScoreGain&>(documents.scores[1])),
              expected = to_json(static_cast<const ScoreGain&>(users.metrics[0]));
  found["seeds"].erase("interval_95_same_documents");
  expected["seeds"].erase("interval_95_same_users");
  EXPECT_EQ(found, expected);  // bit by bit
  EXPECT_GT(documents.scores[1].difference->value, 0);
  EXPECT_EQ(documents.scores[1].difference->units, 40u);
}

/// The formulas of docs/inference.md once more, in plain loops.
TEST(ExperimentComparison, TheErrorIsThatOfTheDocumentation) {
  const runfile::ExperimentRun run = made_experiment_run();
  const UnitScoreGain gain = compare_arms(pair_of(run), few_resamples).scores[0];
  const std::size_t S = 3, U = 40;
  std::vector<std::vector<double>> D(S, std::vector<double>(U));
  std::vector<double> by_seed(S), by_unit(U);
  double all = 0;
  for (std::size_t s = 0; s < S; ++s)
    for (std::size_t u = 0; u < U; ++u) {
      D[s][u] = run.results[S + s]->scores.at("loss")[u] - run.results[s]->scores.at("loss")[u];
      by_seed[s] += D[s][u] / U;
      by_unit[u] += D[s][u] / S;
      all += D[s][u] / (S * U);
    }
  double seed = 0, unit = 0, noise = 0;
  for (std::size_t s = 0; s < S; ++s) seed += (by_seed[s] - all) * (by_seed[s] - all) / (S * (S - 1));
  for (std::size_t u = 0; u < U; ++u) unit += (by_unit[u] - all) * (by_unit[u] - all) / (U * (U - 1));
  for (std::size_t s = 0; s < S; ++s)
    for (std::size_t u = 0; u < U; ++u)
      noise += std::pow(D[s][u] - by_seed[s] - by_unit[u] + all, 2) / ((S - 1) * (U - 1) * S * U);
  ASSERT_TRUE(gain.difference) << gain.difference.reason();
  EXPECT_NEAR(gain.difference->value, all, 1e-13);
  EXPECT_NEAR(*gain.difference->seed_variance, seed, 1e-14);
  EXPECT_NEAR(gain.difference->unit_variance, unit, 1e-14);
  EXPECT_NEAR(*gain.difference->noise_variance, noise, 1e-14);
}

TEST(ExperimentComparison, SaysWhatIsCompared) {
  const ExperimentComparison comparison = compare_arms(pair_of(made_experiment_run()), few_resamples);
  EXPECT_EQ(comparison.title(), "bft against plain on made texts");
  EXPECT_EQ(comparison.unit, "document");
  EXPECT_EQ(comparison.units, 40u);
  EXPECT_THAT(comparison.baseline_seeds, ElementsAre(0, 1, 2));
  const OrderedJson json = to_json(comparison);
  EXPECT_EQ(json["scores"]["loss"]["better"], "lower");
  EXPECT_EQ(json["scores"]["loss"]["measure"], "nats");
  EXPECT_TRUE(json["scores"]["loss"]["seeds"].contains("interval_95_same_documents"));
  EXPECT_FALSE(json["scores"]["loss"].contains("equivalence"));
}

TEST(ExperimentComparison, SaysThatSomeUnitsChoseTheEpoch) {
  runfile::ExperimentRun run = made_experiment_run();
  EXPECT_EQ(compare_arms(pair_of(run), few_resamples).selection_note(), "");
  EXPECT_FALSE(to_json(compare_arms(pair_of(run), few_resamples)).contains("selection_units"));
  run.request["data"]["selection_rows"] = 7u;
  const ExperimentComparison comparison = compare_arms(pair_of(run), few_resamples);
  EXPECT_EQ(comparison.selection_note(),
            "The first 7 documents chose the best epoch too. They count here; gainlens report leaves them out.");
  EXPECT_EQ(to_json(comparison).at("selection_units"), 7);
  run.request["data"]["selection_rows"] = -1;
  EXPECT_THAT(refusal_of([&] { compare_arms(pair_of(run), few_resamples); }), HasSubstr("'selection_rows' must be"));
}

TEST(ExperimentComparison, ALowerLossIsBetter) {
  const ExperimentComparison comparison = compare_arms(pair_of(made_experiment_run()), few_resamples);
  EXPECT_LT(comparison.scores[0].difference->value, 0);
  const std::vector<GainDecision> decisions = decide(std::span(&comparison, 1));
  ASSERT_EQ(decisions.size(), 2u);
  EXPECT_EQ(decisions[0].decision, Decision::better);
  EXPECT_EQ(*decisions[0].holm, std::min(1.0, 2 * *decisions[0].p));  // the smaller one of two
  const ExperimentComparison worse = compare_arms(pair_of(made_experiment_run({.gain = -0.2})), few_resamples);
  EXPECT_EQ(decide(std::span(&worse, 1))[0].decision, Decision::worse);
}

TEST(ExperimentComparison, EqualScoresDecideNothing) {
  runfile::ExperimentRun run = made_experiment_run();
  for (std::size_t seed = 0; seed < 3; ++seed) run.results[3 + seed] = run.results[seed];
  ExperimentOptions options = few_resamples;
  options.margin = 0.1;
  const ExperimentComparison comparison = compare_arms(pair_of(run), options);
  EXPECT_EQ(comparison.scores[0].seeds.difference, 0);
  const std::string reason = "the difference is the same in every run and for every document";
  EXPECT_EQ(comparison.scores[0].difference.reason(), reason);
  EXPECT_EQ(decide(std::span(&comparison, 1))[0].in_words(), "not decidable: " + reason);
  EXPECT_EQ(comparison.scores[0].equivalence->flatness, Flatness::unknown);
  EXPECT_EQ(comparison.scores[0].equivalence->p.reason(), reason);
}

TEST(ExperimentComparison, FewSeedsDecideNothing) {
  ExperimentOptions options = few_resamples;
  options.margin = 1;
  for (const std::vector<std::uint64_t>& seeds : {std::vector<std::uint64_t>{4}, std::vector<std::uint64_t>{4, 9}}) {
    const ExperimentComparison comparison = compare_arms(pair_of(made_experiment_run({.seeds = seeds})), options);
    EXPECT_EQ(decide(std::span(&comparison, 1))[0].decision, Decision::not_decidable);
    EXPECT_FALSE(comparison.scores[0].equivalence->p);
    EXPECT_EQ(to_json(*comparison.scores[0].difference).contains("interval_95_over_documents_alone"),
              seeds.size() == 1);
  }
}

TEST(ExperimentComparison, ScoresBelow0HaveNoRatio) {
  runfile::ExperimentRun run = made_experiment_run();
  for (auto& result : run.results) {
    for (double& loss : result->scores.at("loss")) loss = -loss;
    result->test.at("loss") = mean_score(result->scores.at("loss"));
  }
  const UnitScoreGain gain = compare_arms(pair_of(run), few_resamples).scores[0];
  EXPECT_TRUE(gain.difference->p);
  EXPECT_EQ(gain.log_ratio.reason(), "a mean is below 0: there is no ratio");
  EXPECT_THAT(gain.bootstrap.log_ratio.reason(), HasSubstr("a mean is 0 or below in at least one resample"));
}

TEST(ExperimentComparison, EquivalenceNeedsBothErrorsWithinTheMargin) {
  ExperimentOptions options = few_resamples;
  options.margin = 0.4;  // the difference is about 0.2
  EXPECT_EQ(compare_arms(pair_of(made_experiment_run()), options).scores[0].equivalence->flatness,
            Flatness::equivalent);
  options.margin = 0.1;
  const UnitScoreGain gain = compare_arms(pair_of(made_experiment_run()), options).scores[0];
  EXPECT_EQ(gain.equivalence->flatness, Flatness::changes);
  EXPECT_EQ(*gain.equivalence->difference_p, *gain.difference->p);  // the same test, and the same two errors

  // Seeds alone: three equal differences but for one show a spread that units do not.
  CrossedEstimate estimate = *gain.difference;
  estimate.value = 0;
  estimate.seed_variance = 1;
  estimate.error = 1;
  estimate.degrees_of_freedom = 1000;
  const Equivalence crossed = test_equivalence(estimate.estimate(), 40, 3);
  const Equivalence alone = test_equivalence({0, 1, 2}, 40, 3);
  const Equivalence both = crossed_equivalence(estimate, 3);
  EXPECT_LT(*crossed.p, *alone.p);
  EXPECT_EQ(*both.p, *alone.p);
  EXPECT_EQ(both.interval->low, alone.interval->low);
  EXPECT_EQ(crossed_equivalence(Maybe<CrossedEstimate>::none("why"), 3).p.reason(), "why");
}

TEST(ExperimentComparison, WrongQuestionsAreRefused) {
  const auto refused = [](ExperimentOptions options) {
    options.resamples.count = 50;
    return refusal_of([&] { compare_arms(pair_of(made_experiment_run()), options); });
  };
  EXPECT_EQ(refused({.scores = {"right"}}), "accepted");
  EXPECT_THAT(refused({.scores = {"rigth"}}),
              HasSubstr("run:plain: 'rigth' is no score of the run, which has loss, right"));
  for (const double margin : {0.0, -1.0, std::nan("")})
    EXPECT_THAT(refused({.margin = margin}), HasSubstr("must be above 0")) << margin;

  const auto one = std::make_shared<const runfile::ExperimentRun>(made_experiment_run());
  runfile::ExperimentRun changed = made_experiment_run();
  changed.unit_scores[0].higher_is_better = true;
  const auto other = std::make_shared<const runfile::ExperimentRun>(changed);
  EXPECT_THAT(refusal_of([&] {
                compare_arms(ExperimentPair{{"one", one, 0}, {"two", other, 1}}, few_resamples);
              }),
              HasSubstr("one:plain and two:bft: the score 'loss' is better when lower in one (nats), and when higher"));
  changed.units[3] = "another";
  const auto elsewhere = std::make_shared<const runfile::ExperimentRun>(changed);
  std::vector<ExperimentArm> arms = {{"one", one, 0}, {"two", elsewhere, 1}};
  EXPECT_THAT(refusal_of([&] { pair_arms(arms, {}); }), HasSubstr("but other documents; one of the files is damaged"));
}

TEST(PairedUnits, ScoresThatAreNotFiniteAreNamed) {
  EXPECT_THAT(refusal_of([] {
                paired_units({1, 2, 3, 4}, {1, 2, std::nan(""), 4}, 2, 2, "question");
              }),
              HasSubstr("scores: nan for question 0 in run 1"));
  EXPECT_THAT(refusal_of([] {
                paired_units({1, 2}, {1, 2, 3}, 1, 2, "question");
              }),
              HasSubstr("1 runs of 2 questions need 2 each"));
  EXPECT_THAT(refusal_of([] { paired_units({}, {}, 0, 2, "question"); }),
              HasSubstr("at least one run and one question"));
}

}  // namespace experiment_comparison_test
}  // namespace gainlens::analyses
