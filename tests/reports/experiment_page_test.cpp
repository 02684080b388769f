// The page of `gainlens compare --out` of experiments. Means are computed from the scores here.
#include "reports/comparison/experiment_page.h"

#include "analyses/gain_decisions.h"
#include "analyses/made_noise_run.h"
#include "reports/comparison/decided_changes.h"
#include "reports/comparison/forest.h"
#include "runfile/made_experiment_run.h"
#include "support/file_bytes.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

namespace gainlens::reports {
namespace experiment_page_test {

namespace fs = std::filesystem;
using gainlens::testing::bytes_of;
using gainlens::testing::made_experiment_run;
using gainlens::testing::made_noise_run;
using gainlens::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<analyses::ExperimentComparison> compared_experiments(const runfile::ExperimentRun& run,
                                                                 std::optional<double> margin = {}) {
  const auto shared = std::make_shared<const runfile::ExperimentRun>(run);
  std::vector<analyses::ExperimentArm> arms;
  for (std::size_t arm = 0; arm < run.arms.size(); ++arm) arms.push_back({"run", shared, arm});
  analyses::name_arms(arms);
  std::vector<analyses::ExperimentComparison> comparisons;
  for (const analyses::ExperimentPair& pair : analyses::pair_arms(arms, {}))
    comparisons.push_back(analyses::compare_arms(pair, {.margin = margin, .resamples = {.count = 50, .seed = 7}}));
  return comparisons;
}

/// What an arm has of a score, over all seeds and units.
double mean_of_arm(const runfile::ExperimentRun& run, std::size_t arm, const std::string& score) {
  double sum = 0;
  for (std::size_t seed = 0; seed < run.seeds.size(); ++seed)
    sum += mean_score(run.result(arm, seed)->scores.at(score));
  return sum / static_cast<double>(run.seeds.size());
}

TEST(ExperimentPage, SaysWhoIsBetterInTheUnitsOfTheScores) {
  const TemporaryFolder folder;
  const runfile::ExperimentRun run = made_experiment_run({.arms = {"plain", "bft", "gate"}});
  const auto comparisons = compared_experiments(run, 0.5);
  const WrittenReport written = write_experiment_page(comparisons, {}, folder.path());
  EXPECT_THAT(written.failed, IsEmpty());
  EXPECT_THAT(written.left_out, IsEmpty());
  const std::string page = bytes_of(folder.path() / "report.html");
  EXPECT_THAT(page, HasSubstr("<title>2 comparisons on made texts – gainlens</title>"));
  EXPECT_THAT(page, AllOf(HasSubstr("2 comparisons of arms, paired by seed: bft against plain on made texts; gate"),
                          HasSubstr("Better, also after Holm"), HasSubstr("loss (nats), lower is better"),
                          HasSubstr("seeds and documents"), HasSubstr("whether other documents would gain"),
                          HasSubstr("made texts: 40 documents, seeds 0 to 2, split split-of-tex.")));
  EXPECT_THAT(page,
              AllOf(Not(HasSubstr("user")), Not(HasSubstr("Not everything")), HasSubstr("equivalent within ±0.5")));
  // A loss in nats and a share have no common axis.
  for (const char* name : {"forest.svg", "forest-2.svg", "tables/decisions.tex", "tables/scores.tex"})
    EXPECT_TRUE(fs::exists(folder.path() / name)) << name;
  EXPECT_FALSE(fs::exists(folder.path() / "forest-3.svg"));

  const Json summary = Json::parse(bytes_of(folder.path() / "summary.json"));
  EXPECT_EQ(summary.at("unproven"), Json::array());
  const auto decisions = analyses::decide(comparisons);
  for (std::size_t arm = 1; arm < 3; ++arm) {
    const Json& own = summary.at("runs").at(comparisons[arm - 1].title()).at("scores");
    for (std::size_t score = 0; score < 2; ++score) {
      const std::string name = run.unit_scores[score].name;
      EXPECT_NEAR(own.at(name).at("difference").at("value"), mean_of_arm(run, arm, name) - mean_of_arm(run, 0, name),
                  1e-12);
      EXPECT_EQ(own.at(name).at("decision"), Json(analyses::to_json(decisions[2 * (arm - 1) + score])));
    }
  }
}

TEST(ExperimentPage, TablesForProgramsHaveEveryNumber) {
  const TemporaryFolder folder;
  const runfile::ExperimentRun run = made_noise_run({.seeds = {0, 1, 2}, .selection = 10});
  const auto comparisons = compared_experiments(run);
  EXPECT_THAT(write_experiment_page(comparisons, {}, folder.path()).failed, IsEmpty());
  const std::string csv = bytes_of(folder.path() / "tables" / "decisions.csv");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 11) << "five comparisons of two scores, and the header";
  const analyses::UnitScoreGain& f1 = comparisons[3].scores[1];
  EXPECT_THAT(csv, HasSubstr(fmt::format("made,question,sft/np0,bft/np10,3,60,made-split,f1,1,higher,{},{},{},"
                                         "\"95%, seeds and questions\",{}",
                                         f1.seeds.difference, f1.difference->interval->low,
                                         f1.difference->interval->high, *f1.difference->p)));
  // Levels of one arm have one colour, so that five of them are no sixth arm.
  EXPECT_TRUE(fs::exists(folder.path() / "forest.svg"));
  EXPECT_THAT(
      bytes_of(folder.path() / "report.html"),
      AllOf(HasSubstr("exact match"), HasSubstr("bft/np10 against"),
            HasSubstr(
                "The first 10 questions chose the best epoch too. They count here; gainlens report leaves them out.")));
}

TEST(ExperimentPage, FewSeedsHaveNoLevel) {
  const TemporaryFolder folder;
  write_experiment_page(compared_experiments(made_experiment_run({.seeds = {0, 1}})), {}, folder.path());
  EXPECT_THAT(bytes_of(folder.path() / "report.html"),
              AllOf(HasSubstr("With two seeds there is a range without a level"), HasSubstr("(range)"),
                    HasSubstr("Nothing is decided"), HasSubstr("not decidable: 2 seeds")));
  EXPECT_THAT(bytes_of(folder.path() / "tables" / "decisions.csv"), HasSubstr(",range without a level,,,"));
  write_experiment_page(compared_experiments(made_experiment_run({.seeds = {0}})), {}, folder.path());
  EXPECT_THAT(bytes_of(folder.path() / "report.html"),
              AllOf(HasSubstr("(documents alone)"), HasSubstr("intervals over other documents of this kind")));
}

TEST(ExperimentPage, SaysWhatWasNotProven) {
  const TemporaryFolder folder;
  write_experiment_page(compared_experiments(made_experiment_run()), {"There is no request.json: <i>."}, folder.path());
  const std::string page = bytes_of(folder.path() / "report.html");
  EXPECT_THAT(page, AllOf(HasSubstr("Not everything of these runs was proven. There is no request.json: &lt;i&gt;."),
                          Not(HasSubstr("<i>."))));
  const Json summary = Json::parse(bytes_of(folder.path() / "summary.json"));
  EXPECT_EQ(summary.at("unproven"), Json{"There is no request.json: <i>."});
  EXPECT_TRUE(summary.contains("scores")) << "one comparison is the whole summary";
}

TEST(ExperimentPage, RunsOfDifferentScoresShareAPageWithoutAFigure) {
  const TemporaryFolder folder;
  auto comparisons = compared_experiments(made_experiment_run());
  for (auto& other : compared_experiments(made_noise_run())) comparisons.push_back(other);
  EXPECT_THAT(write_experiment_page(comparisons, {}, folder.path()).failed, IsEmpty());
  EXPECT_THAT(bytes_of(folder.path() / "report.html"),
              AllOf(HasSubstr("the comparisons have different scores"), HasSubstr("seeds and units")));
  EXPECT_FALSE(fs::exists(folder.path() / "forest.svg"));
}

TEST(Forest, NamesTellComparisonsApart) {
  EXPECT_THAT(forest_names({{"bft", "one"}, {"gate", "one"}}, 1), ElementsAre("bft", "gate"));
  EXPECT_THAT(forest_names({{"bft", "one"}, {"bft", "two"}}, 2), ElementsAre("one", "two"));
  EXPECT_THAT(forest_names({{"bft", "one"}, {"gate", "two"}}, 2), ElementsAre("bft, one", "gate, two"));
  EXPECT_THAT(forest_names({{std::string(30, 'a'), "one"}}, 1), ElementsAre(std::string(23, 'a') + "…"));
  EXPECT_THAT(forest_names({{"é" + std::string(23, 'a'), "one"}, {"é" + std::string(24, 'a'), "one"}}, 1),
              ElementsAre("é" + std::string(23, 'a'), "é" + std::string(22, 'a') + "…"));
  // Two splits of one file.
  EXPECT_THAT(forest_names({{"bft", "one"}, {"bft", "one"}, {"bft", "two"}}, 3),
              ElementsAre("one #1", "one #2", "two"));
}

TEST(DecidedChanges, AreAnsweredByComparison) {
  const auto change = [](const char* title, const char* metric, analyses::Decision decision, double holm) {
    return DecidedChange{title, metric, {0, 0, decision, 0.01, holm, ""}};
  };
  using analyses::Decision;
  EXPECT_EQ(answer_in_words(std::vector<DecidedChange>{change("a", "F1", Decision::better, 0.02),
                                                       change("a", "loss", Decision::better, 0.03),
                                                       change("b", "F1", Decision::worse, 0.2)}),
            "Better, also after Holm's correction: a in F1, loss. Worse at 5% without the correction alone: b in F1.");
  EXPECT_EQ(answer_in_words(std::vector<DecidedChange>{change("a", "F1", Decision::not_shown, 1)}),
            "No candidate is shown to be better after Holm's correction.");
  EXPECT_EQ(common_name(std::vector<std::string>{"a", "a"}, "x"), "a");
  EXPECT_EQ(common_name(std::vector<std::string>{"a", "b"}, "x"), "x");
  EXPECT_EQ(interval_heading(std::vector<std::size_t>{3, 2}), "interval");
  EXPECT_EQ(interval_heading(std::vector<std::size_t>{3, 5}), "95% interval");
}

}  // namespace experiment_page_test
}  // namespace gainlens::reports
