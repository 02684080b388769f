// Words, page and terminal of `gainlens estimators`.
#include "core/json.h"
#include "reports/estimators/estimator_words.h"
#include "reports/estimators/estimators_report.h"
#include "support/shared_data.h"
#include "support/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gainlens::reports {
namespace estimators_test {

using analyses::Measured;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Numbers = std::vector<double>;

const analyses::EstimatorTruth& truth() {
  static const analyses::EstimatorTruth made = analyses::estimator_truth({.draws = 400, .n_eff = {1, 2, 10, 100}});
  return made;
}

TEST(EstimatorWords, RangesOfNEff) {
  const Numbers grid = {1, 2, 5, 10};
  const auto words = [&](const Numbers& found) { return n_eff_in_words(found, grid); };
  EXPECT_EQ(words({}), "none");
  EXPECT_EQ(words(grid), "all");
  EXPECT_EQ(words({5, 10}), "5 and more");
  EXPECT_EQ(words({1, 2}), "up to 2");
  EXPECT_EQ(words({2, 5}), "2 to 5");
  EXPECT_EQ(words({1, 5, 10}), "all but 2");
  EXPECT_EQ(words({1, 5}), "1, 5");
  EXPECT_EQ(words({10}), "10");
}

TEST(EstimatorWords, PositionsAndNumbers) {
  EXPECT_THAT(shown_positions(Numbers{1, 2, 3, 5, 10, 20, 50, 100}), ElementsAre(1, 3, 5, 7));
  EXPECT_THAT(shown_positions(Numbers{1}), ElementsAre(0));
  EXPECT_EQ(bias_number(Measured(0.961)), "+96%");
  EXPECT_EQ(bias_number(Measured(-0.0004)), "0%");
  EXPECT_EQ(bias_number(Measured(8.24)), "×9.2");
  EXPECT_EQ(bias_number(Measured(114.9)), "×116");
  EXPECT_EQ(bias_number(Measured::none("no")), "–");
  EXPECT_EQ(coverage_number(Measured(0.9526)), "95.3%");
  EXPECT_EQ(spread_number(Measured(0.0874)), "0.09");
}

TEST(EstimatorsTerminal, EveryScenarioAndEstimatorHasARow) {
  const std::string text = print_estimators(truth());
  for (const analyses::TruthScenario scenario : analyses::truth_scenarios)
    EXPECT_THAT(text, HasSubstr("\n" + std::string(name_of(scenario)) + ": "));
  for (const bft::Estimator estimator : bft::all_estimators)
    EXPECT_THAT(text, HasSubstr("\n" + std::string(bft::name_of(estimator)) + " "));
  EXPECT_THAT(text, HasSubstr("\nreml                0.333  0.091  0.010\n"));  // equal values: 1 / (n + 1)
}

TEST(EstimatorsReport, WritesPageTablesFigureAndSummary) {
  const testing::TemporaryFolder folder;
  const WrittenReport written = write_estimators_report(truth(), folder.path());
  EXPECT_THAT(written.left_out, IsEmpty());
  EXPECT_THAT(written.failed, IsEmpty());
  for (const char* file : {"report.html", "estimators.svg", "estimators.pdf", "estimators.png", "tables/estimators.csv",
                           "tables/estimators.tex", "tables/estimators-trust.tex", "tables/equal-values.tex"})
    EXPECT_TRUE(std::filesystem::exists(folder.path() / file)) << file;
  const Json summary = read_json_file(folder.path() / "summary.json");
  EXPECT_EQ(summary.at("estimators").at("scenarios").size(), analyses::truth_scenarios.size());
  const std::string csv = read_text_file(folder.path() / "tables/estimators.csv");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 6 * 4 * 7);
  const std::string page = read_text_file(folder.path() / "report.html");
  EXPECT_THAT(page, AllOf(HasSubstr("Which estimate of the variance is right?"), HasSubstr("REML, conjugate"),
                          HasSubstr("about the mean of e")));
  const std::string latex = read_text_file(folder.path() / "tables/estimators-trust.tex");
  EXPECT_THAT(latex, HasSubstr("2 and more"));
}

TEST(EstimatorsReport, OneNEffHasNoFigure) {
  const auto one = analyses::estimator_truth({.draws = 100, .n_eff = {4}});
  EXPECT_EQ(estimators_figure(one).reason(), "one n_eff alone");
}

}  // namespace estimators_test
}  // namespace gainlens::reports
