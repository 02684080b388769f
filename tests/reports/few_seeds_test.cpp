// What the terminal says of a comparison of few seeds.

#include "analyses/means_of_runs.h"
#include "analyses/recommender_comparison.h"
#include "reports/terminal/compare_terminal.h"
#include "reports/words/compare_words.h"
#include "runfile/made_recommend_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace gainlens::reports {
namespace few_seeds_test {

using ::testing::HasSubstr;
using ::testing::Not;

std::string printed(const std::vector<std::uint64_t>& seeds) {
  testing::MadeRecommender made;
  made.seeds = seeds;
  const auto run = std::make_shared<const runfile::RecommendRun>(testing::made_recommend_run(made));
  std::vector<analyses::RecommenderArm> arms = {{"run", run, 0}, {"run", run, 1}};
  analyses::name_arms(arms);
  analyses::RecommenderOptions options;
  options.resamples.count = 50;
  const std::vector<analyses::ArmComparison> comparisons = {analyses::compare_arms({arms[0], arms[1]}, options)};
  return print_comparisons(comparisons, {});
}

constexpr const char* note = "p: with fewer than 5 seeds, a p below .01 cannot be relied on";

TEST(FewSeeds, OneHasAnIntervalOverUsersAlone) {
  const std::string text = printed({0});
  EXPECT_THAT(text, HasSubstr("95%, users alone"));
  EXPECT_THAT(text, HasSubstr("It says nothing about other trainings."));
  EXPECT_THAT(text, HasSubstr("-: an error over seeds needs at least 3 seeds; there is 1"));
  EXPECT_THAT(text, HasSubstr("(95%, users alone: "));  // of the first stratum against the last
  EXPECT_THAT(text, Not(HasSubstr("95% of the change")));
}

TEST(FewSeeds, TwoHaveARangeWithoutALevel) {
  const std::string text = printed({0, 1});
  EXPECT_THAT(text, HasSubstr("range, no level"));
  EXPECT_THAT(text, HasSubstr("-: 2 seeds give a range without a level; a 95% interval and a p need a third seed"));
  EXPECT_THAT(text, HasSubstr(note));
  EXPECT_THAT(text, Not(HasSubstr("95% of the change")));
}

TEST(FewSeeds, ThreeHaveAnIntervalAndANoteThatFiveDoNotNeed) {
  for (const std::vector<std::uint64_t>& seeds : {std::vector<std::uint64_t>{0, 1, 2}, {0, 1, 2, 3, 4}}) {
    const std::string text = printed(seeds);
    EXPECT_THAT(text, HasSubstr("95% of the change"));
    EXPECT_EQ(text.find(note) != std::string::npos, seeds.size() < 5);
    EXPECT_THAT(text, Not(HasSubstr("no level")));
    EXPECT_THAT(text, Not(HasSubstr(" 0.0000\n")));  // a p is never 0
  }
}

/// A seed whose training has failed is named, with the score, by its number and not by its place.
TEST(FewSeeds, ASeedFarFromTheOthersIsNamed) {
  const analyses::SeedComparison whole =
                                     analyses::compare_seeds(testing::means_of_runs({0, 0, 0, 0}, {.1, .12, .11, .13})),
                                 failed =
                                     analyses::compare_seeds(testing::means_of_runs({0, 0, 0, 0}, {.1, .12, -5, .13}));
  EXPECT_EQ(compare_words::far_seeds({{"MRR", &whole}}, {7, 8, 9, 10}), "");
  EXPECT_THAT(
      compare_words::far_seeds({{"MRR", &whole}, {"HR@10", &failed}}, {7, 8, 9, 10}),
      ::testing::MatchesRegex("Far from the other seeds by Grubbs' test at 5%: HR@10 with seed 9 .p [0-9.e-]+.. "
                              "Look at these trainings before you trust the mean."));
}

}  // namespace few_seeds_test
}  // namespace gainlens::reports
