#include "analyses/noise_levels.h"

#include "analyses/made_noise_run.h"
#include "analyses/paper_gains.h"
#include "core/error.h"
#include "runfile/made_experiment_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/math/distributions/students_t.hpp>

#include <cmath>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

namespace gainlens::analyses {
namespace noise_levels_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::made_noise_run;
using ::testing::ThrowsMessage;

const ExperimentOptions few_resamples{.resamples = {.count = 50, .seed = 7}};

NoiseLevels levels_of(const runfile::ExperimentRun& run, const std::string& baseline = "") {
  return noise_levels("run", std::make_shared<const runfile::ExperimentRun>(run), baseline, few_resamples);
}

const NoiseGain& gain_over(const NoiseLevels& levels, const NoiseRange& range) {
  for (const NoiseGain& gain : levels.gains)
    if (gain.range.only == range.only && gain.range.without == range.without) return gain;
  throw InvalidArgument("no such gain");
}

TEST(NoiseLevels, EveryLevelAllTogetherAndAllButOne) {
  const NoiseLevels levels = levels_of(made_noise_run());
  EXPECT_THAT(levels.arms, ElementsAre("sft", "bft"));
  EXPECT_THAT(levels.levels, ElementsAre(0, 10, 40));
  EXPECT_EQ(levels.cells.size(), 6u);
  EXPECT_EQ(levels.gains.size(), 7u);  // three levels, all, three without one
  EXPECT_EQ(levels.rows().size(), 4u);
  EXPECT_EQ(levels.decided.size(), 8u);  // of two scores
  EXPECT_EQ(levels_of(made_noise_run(), "bft").arms.front(), "bft");
}

// By hand: the mean of a seed over levels and questions, whatever the order of the means.
TEST(NoiseLevels, SeedsAreTheSamplesOfThePool) {
  const runfile::ExperimentRun run = made_noise_run();
  const NoiseLevels levels = levels_of(run);
  const UnitScoreGain& pooled = gain_over(levels, {}).comparison->scores[1];
  EXPECT_EQ(gain_over(levels, {}).comparison->baseline_seeds.size(), 5u);
  for (std::size_t seed = 0; seed < 5; ++seed) {
    double difference = 0;
    for (std::size_t level = 0; level < 3; ++level)
      difference += (run.result(3 + level, seed)->test.at("f1") - run.result(level, seed)->test.at("f1")) / 3;
    EXPECT_NEAR(pooled.seed_differences[seed], difference, 1e-12);
  }
  ASSERT_TRUE(pooled.difference && pooled.difference->interval);
  EXPECT_GT(pooled.difference->interval->low, 0);
  // The naive p by hand: the t of 15 differences.
  std::vector<double> all;
  for (std::size_t level = 0; level < 3; ++level)
    for (const double one : gain_over(levels, {.only = level}).comparison->scores[1].seed_differences)
      all.push_back(one);
  const double mean = std::accumulate(all.begin(), all.end(), 0.0) / 15;
  double squares = 0;
  for (const double one : all) squares += (one - mean) * (one - mean);
  const double t = mean / std::sqrt(squares / 14 / 15);
  const boost::math::students_t student(14);
  EXPECT_NEAR(*gain_over(levels, {}).naive_p[1], 2 * boost::math::cdf(boost::math::complement(student, t)), 1e-12);
  const UnitScoreGain& without = gain_over(levels, {.without = 2}).comparison->scores[1];
  const double first = gain_over(levels, {.only = 0}).comparison->scores[1].seeds.difference,
               second = gain_over(levels, {.only = 1}).comparison->scores[1].seeds.difference;
  EXPECT_NEAR(without.seeds.difference, (first + second) / 2, 1e-12);
}

TEST(NoiseLevels, EqualArmsAreExactlyEqual) {
  runfile::ExperimentRun run = made_noise_run();
  for (std::size_t i = 0; i < 15; ++i) run.results[15 + i] = run.results[i];
  for (const NoiseGain& gain : levels_of(run).gains) {
    for (const UnitScoreGain& score : gain.comparison->scores) EXPECT_EQ(score.seeds.difference, 0);
  }
}

TEST(NoiseLevels, QuestionsThatChoseTheEpochAreNotCounted) {
  const runfile::ExperimentRun all = made_noise_run(), some = made_noise_run({.selection = 20});
  const NoiseLevels levels = levels_of(some);
  EXPECT_EQ(levels.selection_units, 20u);
  EXPECT_EQ(gain_over(levels, {}).comparison->units, 40u);
  EXPECT_EQ(gain_over(levels_of(all), {}).comparison->units, 60u);
  EXPECT_EQ(levels_of(made_noise_run({.selection = 60})).selection_units, 0u);  // nothing else is there
  EXPECT_THAT([] { levels_of(made_noise_run({.selection = 61})); },
              ThrowsMessage<InvalidArgument>(HasSubstr("'selection_rows' must be a number of units, at most 60")));
}

TEST(NoiseLevels, TakesTheSeedsThatBothArmsHave) {
  runfile::ExperimentRun run = made_noise_run();
  run.results[5 * 5 + 3].reset();  // bft/np40, seed 3
  const NoiseLevels levels = levels_of(run);
  EXPECT_THAT(gain_over(levels, {.only = 2}).comparison->baseline_seeds, ElementsAre(0, 1, 2, 4));
  EXPECT_EQ(gain_over(levels, {.only = 0}).comparison->baseline_seeds.size(), 5u);
  EXPECT_THAT(gain_over(levels, {}).comparison->baseline_seeds, ElementsAre(0, 1, 2, 4));
  for (std::size_t seed = 0; seed < 5; ++seed) run.results[5 * 5 + seed].reset();
  EXPECT_EQ(gain_over(levels_of(run), {}).comparison.reason(), "no seed has finished both arms");
}

TEST(NoiseLevels, Refuses) {
  EXPECT_THAT([] { levels_of(testing::made_experiment_run()); },
              ThrowsMessage<InvalidArgument>(HasSubstr("run: its arms have no levels of noise")));
  EXPECT_THAT([] { levels_of(made_noise_run(), "bff"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("run: has no arm 'bff', but sft, bft; did you mean 'bft'?")));
  for (const char* label : {"bft/npnan", "bft/np-1", "bft/np101", "bft"}) {
    runfile::ExperimentRun other = made_noise_run();
    other.arms.back() = label;
    EXPECT_THAT([&] { levels_of(other); }, ThrowsMessage<InvalidArgument>(HasSubstr("has no level of noise"))) << label;
  }
  runfile::ExperimentRun none = made_noise_run();
  for (auto& result : none.results) result.reset();
  EXPECT_THAT([&] { levels_of(none); }, ThrowsMessage<InvalidArgument>(HasSubstr("no training is finished")));
}

// The means that the paper prints below its table are those of its cells, to their three decimals.
TEST(PaperFinetuning, CellsAverageToThePrintedPool) {
  for (const auto& [arm, pool] : {std::pair("bft", .3072), std::pair("focal", .2967), std::pair("sft", .2958)}) {
    double sum = 0;
    for (const int level : {0, 10, 20, 30, 40}) sum += find_paper_answer_score("squad", level, arm)->f1 / 5;
    EXPECT_NEAR(sum, pool, 6e-4) << arm;
  }
  for (const auto& [arm, pool] : {std::pair("bft", .1478), std::pair("sft", .1372)}) {
    double sum = 0;
    for (const int passages : {5, 10, 15, 20}) sum += find_paper_answer_score("nq", passages, arm)->f1 / 4;
    EXPECT_NEAR(sum, pool, 6e-4) << arm;
  }
  EXPECT_EQ(find_paper_answer_score("nq", 5, "focal"), nullptr);
  EXPECT_EQ(paper_answer_scores().size(), 23u);
}

}  // namespace noise_levels_test
}  // namespace gainlens::analyses
