// The words, figures and page of `gainlens sensitivity`.
#include "analyses/made_sensitivity.h"
#include "reports/sensitivity/sensitivity_report.h"
#include "reports/sensitivity/sensitivity_words.h"
#include "support/file_bytes.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace gainlens::reports {
namespace sensitivity_test {

using analyses::Sensitivity;
using gainlens::testing::bytes_of;
using gainlens::testing::made_sensitivity_run;
using gainlens::testing::MadeSensitivity;
using gainlens::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Sensitivity read(const MadeSensitivity& made, const analyses::SensitivityOptions& options = {}) {
  return analyses::sensitivity("run", std::make_shared<const runfile::RecommendRun>(made_sensitivity_run(made)),
                               options);
}

MadeSensitivity seven_knobs() {
  return {.settings = {{"initial_gain", 0.5},
                       {"initial_gain", 0.99},
                       {"initial_decay", 0.9},
                       {"initial_decay", 0.999},
                       {"most_process_noise", 0.0},
                       {"most_process_noise", 10.0},
                       {"prior_variance", 0.01},
                       {"prior_variance", 1.0},
                       {"warm_up", 0, -0.3},
                       {"warm_up", 500, -0.1},
                       {"precision_learning_rate", 1},
                       {"precision_learning_rate", 1000},
                       {"most_precision", 200, 0, 0}}};
}

TEST(SensitivityTerminal, SaysTheAnswerOfEachKnobAndWhatThePaperSays) {
  const std::string text = print_sensitivity(read(seven_knobs()));
  EXPECT_THAT(
      text, AllOf(StartsWith("arm bft on made (sasrec), HR@10, seeds 0 to 4, 600 users; margin ±1%\n"),
                  HasSubstr("\nK0 (initial_gain): not decided: flat only within ±"),
                  HasSubstr("  paper: zero measurable effect across an order of magnitude\n"),
                  HasSubstr("\nwarm-up (warm_up): differs: worse at 0 (-"), HasSubstr("  paper: a cliff: 0 steps lose"),
                  HasSubstr("\n  1/d       5     0."), HasSubstr("reference\n"),
                  HasSubstr("\nlambda_max (most_precision): flat within ±1%: no setting changes a rank\n"),
                  HasSubstr(" same ranks             –        –        ±0.0%\n"),
                  HasSubstr("With 5 seeds and 600 users"), HasSubstr("shows no flatness"), Not(HasSubstr("left out"))));
}

TEST(SensitivityTerminal, NamesWhatIsLeftOutAndMakesTextsSafe) {
  Sensitivity found = read({.settings = {{"initial_gain", 0.5}}, .seeds = 1});
  found.left_out.push_back({"bft/both\x1b[2J", "it changes 2 settings"});
  found.data_set = "a\x1b[2J";
  const std::string text = print_sensitivity(found);
  EXPECT_THAT(text, AllOf(HasSubstr("left out:\n  bft/both"), Not(HasSubstr("\x1b")), HasSubstr(", seed 0, "),
                          HasSubstr("With 1 seed, no change has a 95% interval: nothing can be decided.")));
}

TEST(SensitivityFigure, HasAPanelForEachKnobOfItsGroup) {
  const Sensitivity found = read(seven_knobs());
  const auto flat = sensitivity_figure(found, KnobGroup::flat), tunable = sensitivity_figure(found, KnobGroup::tunable);
  ASSERT_TRUE(flat);
  ASSERT_TRUE(tunable);
  EXPECT_THAT(flat->script, AllOf(HasSubstr("{/:Bold (d)}"), Not(HasSubstr("{/:Bold (e)}"))));
  EXPECT_THAT(tunable->script, AllOf(HasSubstr("{/:Bold (c)}"), Not(HasSubstr("{/:Bold (d)}"))));
  // 0 of a logarithmic axis stands left of 1, and keeps its name.
  EXPECT_THAT(flat->script, HasSubstr("set xtics (\"0\" 0.5, \"1\" 1, \"10\" 10)"));
  EXPECT_THAT(flat->script, HasSubstr("\"1/d\" 0.03125"));
  // The warm-up differs: its points are drawn again in another colour.
  EXPECT_THAT(tunable->script, HasSubstr("$knob_0_differs"));
  EXPECT_THAT(flat->script, Not(HasSubstr("_differs")));
  EXPECT_EQ(sensitivity_figure(found, KnobGroup::other).reason(), "no knob of this group was varied");
}

TEST(SensitivityFigure, SettingsThatAreWordsStandSideBySide) {
  const auto figure = sensitivity_figure(
      read({.settings = {{"estimator", "kish"}, {"estimator", "sandwich"}, {"dropout", 0.4}}}), KnobGroup::other);
  ASSERT_TRUE(figure);
  EXPECT_THAT(figure->script, HasSubstr("set xtics (\"reml\" 0, \"kish\" 1, \"sandwich\" 2)"));
}

TEST(SensitivityReport, HasFiguresTablesAndASummary) {
  const TemporaryFolder folder;
  const std::filesystem::path page = folder.path() / "page";
  MadeSensitivity made = seven_knobs();
  made.settings.push_back({"dropout", 0.2});
  const WrittenReport written = write_sensitivity_report(read(made), page);
  EXPECT_TRUE(written.left_out.empty());
  EXPECT_TRUE(written.failed.empty());
  for (const char* file : {"sensitivity-flat.svg", "sensitivity-tunable.pdf", "sensitivity-other.png",
                           "tables/sensitivity-knobs.tex", "tables/sensitivity-settings.tex"})
    EXPECT_TRUE(std::filesystem::exists(page / file)) << file;
  EXPECT_THAT(bytes_of(page / "report.html"), AllOf(HasSubstr("differs: worse at 0 ("), HasSubstr("a U with its")));
  EXPECT_THAT(bytes_of(page / "tables/sensitivity.csv"),
              AllOf(StartsWith("knob,setting,seeds,mean,deviation,change,"), HasSubstr("\nprior_variance,1/d,5,0."),
                    HasSubstr("\nmost_precision,200,5,0.")));
  EXPECT_THAT(bytes_of(page / "summary.json"), HasSubstr("\"least_margin\""));
}

}  // namespace sensitivity_test
}  // namespace gainlens::reports
