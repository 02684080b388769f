// The page of `gainlens compare --out`. Expected numbers are computed from the ranks here (ranks_by_hand.h).
#include "reports/recommend/compare_report.h"

#include "core/atomic_file.h"
#include "ranks_by_hand.h"
#include "reports/recommend/compared_arms.h"
#include "runfile/made_recommend_run.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace gainlens::reports {
namespace compare_report_test {

namespace fs = std::filesystem;
using gainlens::testing::by_seed;
using gainlens::testing::fifth_of_items;
using gainlens::testing::made_recommend_run;
using gainlens::testing::MadeRecommender;
using gainlens::testing::over;
using gainlens::testing::printed;
using gainlens::testing::printed_change;
using gainlens::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const char* const metrics[] = {"hr@10", "ndcg@10", "mrr"};

const char* const titles[] = {"HR@10", "NDCG@10", "MRR"};

analyses::RecommenderOptions few_resamples(const std::string& paper = "") {
  analyses::RecommenderOptions options;
  options.resamples.count = 50;
  options.paper = paper;
  return options;
}

/// Every later arm of the run against its first.
std::vector<analyses::ArmComparison> compared(const runfile::RecommendRun& run, const std::string& paper) {
  const auto shared = std::make_shared<const runfile::RecommendRun>(run);
  std::vector<analyses::RecommenderArm> arms;
  for (std::size_t arm = 0; arm < run.arms.size(); ++arm) arms.push_back({"run", shared, arm});
  analyses::name_arms(arms);
  std::vector<analyses::ArmComparison> comparisons;
  for (std::size_t arm = 1; arm < arms.size(); ++arm)
    comparisons.push_back(analyses::compare_arms({arms[0], arms[arm]}, few_resamples(paper)));
  return comparisons;
}

runfile::RecommendRun on(const std::string& data, std::uint64_t users_seed = 0) {
  MadeRecommender made;
  made.data = data;
  made.users_seed = users_seed;
  return made_recommend_run(made);
}

/// Comparisons as the sections see them.
class Page {
 public:
  /// @param papers  for each run, see RecommenderOptions::paper; those that are left out are by size
  explicit Page(const std::vector<runfile::RecommendRun>& runs, const std::vector<std::string>& papers = {}) {
    for (std::size_t i = 0; i < runs.size(); ++i) {
      for (const auto& comparison : compared(runs[i], i < papers.size() ? papers[i] : ""))
        comparisons_.push_back(comparison);
    }
    pooled_ = analyses::pool_comparisons(comparisons_, few_resamples());
    arms_ = compared_arms(comparisons_, pooled_);
  }
  template <typename Type>
  std::vector<Type> blocks(const Section<ComparedArms>& section) const {
    std::vector<Type> found;
    for (const Block& block : section.blocks(arms_)) {
      if (const auto* wanted = std::get_if<Type>(&block)) found.push_back(*wanted);
    }
    return found;
  }
  const ComparedArms& arms() const { return arms_.front(); }
  Comparisons all() const { return arms_; }
  WrittenReport write(const fs::path& out) const { return write_compare_report(comparisons_, pooled_, out); }

 private:
  std::vector<analyses::ArmComparison> comparisons_;
  std::vector<analyses::PooledComparison> pooled_;
  std::vector<ComparedArms> arms_;
};

/// p of the paired t over three seeds. With two degrees of freedom the tails are 1 - t / sqrt(t² + 2).
double paired_p(const runfile::RecommendRun& run, const char* metric) {
  const std::vector<double> one = by_seed(run, 0, metric), other = by_seed(run, 1, metric);
  const auto d = over({other[0] - one[0], other[1] - one[1], other[2] - one[2]});
  const double t = std::abs(d.mean) / (d.deviation / std::sqrt(3.0));
  return 1 - t / std::sqrt(t * t + 2);
}

std::string printed_p(double p) {
  return p < 0.0001 ? "<.0001" : fmt::format("{:.{}f}", p, p < 0.001 ? 4 : 3).substr(1);
}

runfile::RecommendRun with_seeds(std::size_t seeds, std::vector<std::string> arms = {"plain", "bft"}) {
  MadeRecommender made;
  made.arms = std::move(arms);
  made.seeds.clear();
  for (std::size_t seed = 0; seed < seeds; ++seed) made.seeds.push_back(static_cast<std::int64_t>(seed));
  return made_recommend_run(made);
}

std::vector<std::string> headings(const PaperTable& table) {
  std::vector<std::string> names;
  for (const Column& column : table.columns) names.push_back(column.heading);
  return names;
}

TEST(CompareDecisions, TheFirstTableHoldsThePThatDecidesAndNamesTheOther) {
  const runfile::RecommendRun run = on("made");
  const Page page({run});
  EXPECT_EQ(compare_sections.front()->name, "decisions");
  const PaperTable table = page.blocks<PaperTable>(decisions_section).at(0);
  EXPECT_THAT(headings(table), ElementsAre("metric", "Δ", "95% interval", "p", "Holm's p", "naive p", "decision"));
  ASSERT_EQ(table.rows.size(), 4u);
  EXPECT_THAT(table.rows[0], ElementsAre("bft against plain on made (SASRec), 3 seeds"));
  for (std::size_t i = 0; i < 3; ++i) {
    const double one = over(by_seed(run, 0, metrics[i])).mean, other = over(by_seed(run, 1, metrics[i])).mean;
    const auto& estimate = page.arms().comparison.metrics[i].log_ratio;
    const std::vector<std::string>& row = table.rows[1 + i];
    EXPECT_EQ(row[0], titles[i]);
    EXPECT_EQ(row[1], printed_change(other / one - 1));
    EXPECT_EQ(row[3], printed_p(*estimate->p));
    EXPECT_EQ(row[5], printed_p(paired_p(run, metrics[i])));
    EXPECT_EQ(row[6], page.arms().decisions()[i].in_words());
  }
  EXPECT_THAT(latex_table(table), AllOf(HasSubstr("naive $p$"), HasSubstr("The naive $p$ is the paired t over seeds")));
  const CsvTable csv = decisions_section.tables(page.arms()).at(0);
  EXPECT_THAT(csv.header, AllOf(Contains("p"), Contains("p_holm"), Contains("paired_t_naive_p"), Contains("decision")));
  EXPECT_EQ(std::get<double>(csv.rows[0][12]), *page.arms().comparison.metrics[0].log_ratio->p);
}

TEST(CompareDecisions, TwoSeedsHaveARangeAndOneSeedItsUsers) {
  const Page two({with_seeds(2)}), one({with_seeds(1)});
  const std::vector<std::string> ranged = two.blocks<PaperTable>(decisions_section).at(0).rows[2];
  EXPECT_THAT(ranged[2], HasSubstr("] (range)"));
  EXPECT_THAT(headings(two.blocks<PaperTable>(decisions_section).at(0)), Contains("interval"));
  EXPECT_EQ(ranged[3], "–");
  EXPECT_EQ(ranged[6], "not decidable: 2 seeds");
  const std::vector<std::string> alone = one.blocks<PaperTable>(decisions_section).at(0).rows[2];
  EXPECT_THAT(alone[2], HasSubstr("] (users alone)"));
  EXPECT_EQ(alone[6], "not decidable: 1 seed");
  EXPECT_THAT(two.blocks<Html>(decisions_section).at(1).text, HasSubstr("a range without a level"));
  EXPECT_THAT(one.blocks<Html>(decisions_section).at(1).text, HasSubstr("nothing is known of other trainings"));
  EXPECT_THAT(Page({with_seeds(3)}).blocks<Html>(decisions_section).at(1).text,
              HasSubstr("With fewer than 5 seeds, a <i>p</i> below .01 cannot be relied on"));
  EXPECT_EQ(Page({with_seeds(6)}).blocks<Html>(decisions_section).size(), 1U);
  EXPECT_THAT(two.blocks<Html>(decisions_section).at(0).text, HasSubstr("Nothing is decided"));
}

TEST(CompareDecisions, TheAnswerNamesTheRowsThatAreFound) {
  const Page page({with_seeds(6, {"plain", "bft", "popularity"})});
  const std::string text = page.blocks<Html>(decisions_section).at(0).text;
  const PaperTable table = page.blocks<PaperTable>(decisions_section).at(0);
  bool any = false;
  for (const auto& row : table.rows) {
    if (row.size() < 7 || row[6] == "not shown") continue;
    any = true;
    EXPECT_THAT(text, HasSubstr(row[0])) << row[6];
    EXPECT_THAT(text, HasSubstr(row[6].starts_with("better") ? "Better" : "Worse"));
  }
  EXPECT_TRUE(any) << text;
}

TEST(CompareDecisions, SeveralArmsAreOneTable) {
  const Page page({with_seeds(3, {"plain", "bft", "gate", "popularity"})});
  EXPECT_EQ(page.blocks<PaperTable>(decisions_section).at(0).rows.size(), 12u);
  const CsvTable csv = decisions_section.common_tables(page.all()).at(0);
  ASSERT_EQ(csv.rows.size(), 9u);
  EXPECT_EQ(std::get<std::string>(csv.rows[8][3]), "popularity");
}

TEST(CompareForest, EachRowHasBothIntervalsAndItsLevel) {
  const Page page({with_seeds(3, {"plain", "bft", "gate"})});
  const CaptionedFigure figure = page.blocks<CaptionedFigure>(decisions_section).at(0);
  ASSERT_TRUE(figure.figure) << figure.figure.reason();
  EXPECT_EQ(figure.figure->width, column_width);
  const std::string& script = figure.figure->script;
  EXPECT_THAT(script, AllOf(HasSubstr("$naive <<"), HasSubstr("$lines_1_1 <<"), HasSubstr("$points_2_1 <<"),
                            HasSubstr("change against plain (%)"), HasSubstr("naive 95%, seeds alone"),
                            HasSubstr("\"bft\" -1, \"gate\" -2"), Not(HasSubstr("$lines_0_1"))));
  const auto& gain = page.arms().comparison.metrics[0];
  EXPECT_THAT(script, HasSubstr(fmt::format("{:.9g} -1\n", 100 * std::expm1(gain.log_ratio->value))));
  EXPECT_THAT(figure.caption.shows,
              AllOf(HasSubstr("Thick lines with filled markers are 95% intervals over seeds and users"),
                    Not(HasSubstr("range"))));
  const CaptionedFigure ranges = Page({with_seeds(2)}).blocks<CaptionedFigure>(decisions_section).at(0);
  EXPECT_THAT(ranges.figure->script, AllOf(HasSubstr("$lines_1_2 <<"), HasSubstr("range, no level")));
  EXPECT_THAT(ranges.caption.shows, HasSubstr("are ranges without a level: of two seeds, or of too few units"));
  const CaptionedFigure users = Page({with_seeds(1)}).blocks<CaptionedFigure>(decisions_section).at(0);
  EXPECT_THAT(users.caption.shows, AllOf(HasSubstr("intervals over users alone"), Not(HasSubstr("naive"))));
}

TEST(CompareForest, ACandidateFarOffLeavesTheOthersTheAxis) {
  runfile::RecommendRun run = with_seeds(3, {"plain", "bft", "popularity"});
  for (std::size_t i = 6; i < 9; ++i) {
    for (double& rank : run.results[i]->scores.at("rank")) rank = rank == 1 ? 8 : 20;
  }
  // bft gains some percent of every fifth user; popularity loses nearly all
  for (std::size_t i = 3; i < 6; ++i) {
    std::vector<double>& plain = run.results[i - 3]->scores.at("rank");
    plain.assign(plain.size(), 4);
    std::vector<double>& bft = run.results[i]->scores.at("rank") = plain;
    for (std::size_t user = 0; user < bft.size(); user += 5) bft[user] = 3;
  }
  const CaptionedFigure figure = Page({run}).blocks<CaptionedFigure>(decisions_section).at(0);
  ASSERT_TRUE(figure.figure) << figure.figure.reason();
  EXPECT_THAT(figure.figure->script, HasSubstr("set label \"← −"));
  EXPECT_THAT(figure.figure->script, HasSubstr("no interval"));  // the hits of bft are those of plain
  EXPECT_THAT(figure.caption.shows, HasSubstr("A number with an arrow is a change beyond the axis."));
}

TEST(CompareGains, TheTableOfMeansHoldsBothP) {
  const runfile::RecommendRun run = on("made");
  const Page page({run});
  const PaperTable table = page.blocks<PaperTable>(gains_section).at(0);
  EXPECT_THAT(headings(table), ElementsAre("metric", "plain", "bft", "Δ", "95% interval", "p", "naive p"));
  ASSERT_EQ(table.rows.size(), 4u);
  EXPECT_THAT(table.caption, Not(HasSubstr("paper")));  // no such row
  for (std::size_t i = 0; i < 3; ++i) {
    const auto one = over(by_seed(run, 0, metrics[i])), other = over(by_seed(run, 1, metrics[i]));
    const auto& estimate = page.arms().comparison.metrics[i].log_ratio;
    EXPECT_THAT(table.rows[1 + i],
                ElementsAre(titles[i], printed(one), printed(other), printed_change(other.mean / one.mean - 1),
                            HasSubstr("%]"), printed_p(*estimate->p), printed_p(paired_p(run, metrics[i]))));
  }
}

TEST(CompareGains, ThePaperStandsBelowTheMetricsOfItsDataSet) {
  const PaperTable table = Page({on("a"), on("b", 1)}, {"Beauty"}).blocks<PaperTable>(gains_section).at(0);
  ASSERT_EQ(table.rows.size(), 11u);  // two headings and three metrics each; the paper has one of the data sets
  EXPECT_THAT(table.rows[2], ElementsAre("paper", ".0881 (.0018)", ".0890 (.0009)", "+1.0%", "–", "–", ".087"));
  EXPECT_THAT(table.caption,
              HasSubstr("Rows called paper: what the paper prints over 20 seeds for Beauty, which --paper names."));
}

TEST(CompareGains, EveryTestIsFoldedAndTheNaiveOnesAreCalledSo) {
  const runfile::RecommendRun run = on("made");
  const Page page({run});
  const PaperTable table = page.blocks<PaperTable>(gains_section).at(1);
  ASSERT_EQ(page.blocks<FoldStart>(gains_section).size(), 1u);
  ASSERT_EQ(table.rows.size(), 4u);  // a heading and three metrics
  EXPECT_EQ(table.spans[2].heading, "naive: seeds alone");
  for (std::size_t i = 0; i < 3; ++i) {
    const double one = over(by_seed(run, 0, metrics[i])).mean, other = over(by_seed(run, 1, metrics[i])).mean;
    EXPECT_EQ(table.rows[1 + i][0], titles[i]);
    EXPECT_EQ(table.rows[1 + i][1], printed_change(other / one - 1));
    EXPECT_EQ(table.rows[1 + i][4], printed_p(paired_p(run, metrics[i])));
  }
}

TEST(CompareGains, TheFourthOfFewArmsIsFound) {
  const Page page({with_seeds(3, {"plain", "bft", "gate", "popularity"})});
  // The answer is open; what is about one comparison alone is folded.
  EXPECT_EQ(page.blocks<FoldStart>(strata_section).size(), 3u);
  EXPECT_THAT(Page({with_seeds(3)}).blocks<FoldStart>(strata_section), IsEmpty());
}

TEST(CompareStrata, ChangesAreThoseOfTheUsersOfTheGroup) {
  const runfile::RecommendRun run = on("made");
  const std::vector<std::size_t> fifth = fifth_of_items(run);
  const PaperTable table = Page({run}).blocks<PaperTable>(strata_section).at(0);
  ASSERT_EQ(table.rows.size(), 5u);
  EXPECT_EQ(table.columns.size(), 10u);  // without columns for the paper, which has nothing
  EXPECT_THAT(table.caption, Not(HasSubstr("paper")));
  for (std::size_t group = 0; group < 5; ++group) {
    const auto takes = [&](std::size_t user) { return fifth[user] == group; };
    EXPECT_EQ(table.rows[group][1], std::to_string(std::count(fifth.begin(), fifth.end(), group)));
    for (std::size_t i = 0; i < 3; ++i) {
      const double one = over(by_seed(run, 0, metrics[i], takes)).mean;
      const double other = over(by_seed(run, 1, metrics[i], takes)).mean;
      const std::string expected = one > 0 ? printed_change(other / one - 1) : "–";
      EXPECT_EQ(table.rows[group][4 + 2 * i], expected) << metrics[i] << " in group " << group;
    }
  }
}

TEST(CompareStrata, ThePaperHasStrataOfSports) {
  const PaperTable table = Page({on("data")}, {"Sports"}).blocks<PaperTable>(strata_section).at(0);
  EXPECT_EQ(table.columns[9].heading, "paper");
  EXPECT_EQ(table.rows[0][9], "+17.1%");  // ndcg@10 of the rarest items: bft.tex, Table cold-item
}

TEST(CompareStrata, TheCsvFileHoldsMeansOfBothArms) {
  const runfile::RecommendRun run = on("made");
  const std::vector<std::size_t> fifth = fifth_of_items(run);
  const CsvTable table = strata_section.tables(Page({run}).arms()).at(0);
  EXPECT_EQ(table.header[7], "baseline_mean");
  for (std::size_t i = 0; i < 5; ++i) {  // hr@10 by item frequency comes first
    const auto takes = [&](std::size_t user) { return fifth[user] == i; };
    EXPECT_NEAR(std::get<double>(table.rows[i][7]), over(by_seed(run, 0, "hr@10", takes)).mean, 1e-6);
    EXPECT_NEAR(std::get<double>(table.rows[i][8]), over(by_seed(run, 1, "hr@10", takes)).mean, 1e-6);
  }
}

TEST(CompareLearningCurves, BothArmsAreDrawnWithTheirLoss) {
  const CaptionedFigure figure = Page({on("made")}).blocks<CaptionedFigure>(learning_curves_section).at(0);
  ASSERT_TRUE(figure.figure) << figure.figure.reason();
  for (const char* block : {"$loss_0_0 <<", "$loss_mean_1 <<", "$metric_1_2 <<", "$metric_best_1 <<"})
    EXPECT_THAT(figure.figure->script, HasSubstr(block));
  EXPECT_THAT(figure.caption.shows, HasSubstr("bft against plain on made (SASRec). (a) The mean training loss"));
}

TEST(CompareLearningCurves, ArmsOfOneDataSetShareAFigureAndKeepTheirStyle) {
  const Page page({with_seeds(2, {"plain", "bft", "gate"}), on("other", 1)});
  const auto figures = page.blocks<CaptionedFigure>(learning_curves_section);
  ASSERT_EQ(figures.size(), 2u);
  EXPECT_EQ(figures[1].name, "learning-curves-2");
  for (const char* block : {"$loss_mean_0 <<", "$loss_mean_1 <<", "$loss_mean_2 <<"})
    EXPECT_THAT(figures[0].figure->script, HasSubstr(block));
  EXPECT_THAT(figures[0].figure->script, Not(HasSubstr("$loss_mean_3")));  // plain once
  EXPECT_THAT(figures[0].caption.shows, HasSubstr("3 trained arms on made (SASRec)"));
  EXPECT_EQ(page.all()[1].candidate_style, 2u);
  EXPECT_EQ(page.all()[2].baseline_style, 0u);
  EXPECT_EQ(page.all()[2].candidate_style, 1u);  // bft, as on the first data set
}

TEST(ComparePooled, FisherIsOfTheProductOfBothP) {
  const runfile::RecommendRun one = on("one"), two = on("two", 1);
  const Page page({one, two});
  const std::vector<PaperTable> tables = page.blocks<PaperTable>(pooled_section);
  ASSERT_EQ(tables.size(), 2u);
  ASSERT_EQ(tables[0].rows.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    const double first = paired_p(one, metrics[i]), second = paired_p(two, metrics[i]), product = first * second;
    // -2 ln of the product is chi-square with 4 degrees of freedom.
    EXPECT_EQ(tables[0].spans[1].heading, "naive p, seeds alone");
    EXPECT_EQ(tables[0].rows[i][1], printed_p(product * (1 - std::log(product)))) << metrics[i];
    // Holm: the smaller p twice, the larger at least that.
    EXPECT_EQ(tables[1].columns[2 + 2 * i].heading, "naive");
    EXPECT_EQ(tables[1].rows[0][2 + 2 * i], printed_p(first < second ? 2 * first : std::max(first, 2 * second)));
  }
  EXPECT_THAT(Page({one}).blocks<PaperTable>(pooled_section), IsEmpty());
}

TEST(CompareReport, EveryFileIsThereAndTheSameTwice) {
  const TemporaryFolder folder;
  const Page page({on("Beauty"), on("two", 1)});
  const WrittenReport report = page.write(folder.path() / "one");
  EXPECT_THAT(report.left_out, IsEmpty());
  EXPECT_THAT(report.failed, IsEmpty());
  page.write(folder.path() / "two");
  for (const fs::path& file : report.files)
    EXPECT_TRUE(read_text_file(folder.path() / "one" / file) == read_text_file(folder.path() / "two" / file)) << file;
  std::vector<std::string> names;
  for (const fs::path& file : report.files) names.push_back(file.string());
  for (const char* name : {"report.html",
                           "summary.json",
                           "learning-curves.svg",
                           "learning-curves.pdf",
                           "learning-curves.png",
                           "learning-curves-2.svg",
                           "forest.svg",
                           "forest.pdf",
                           "forest.png",
                           "tables/decisions.tex",
                           "tables/decisions.csv",
                           "tables/run-2/decisions.csv",
                           "tables/comparison.tex",
                           "tables/gains.tex",
                           "tables/strata-items.tex",
                           "tables/strata-users-2.tex",
                           "tables/pooled.tex",
                           "tables/pooled-holm.tex",
                           "tables/run-1/comparison.csv",
                           "tables/run-2/strata.csv",
                           "tables/run-2/learning-curves.csv"})
    EXPECT_THAT(names, Contains(name));
  const std::string html = read_text_file(folder.path() / "one" / "report.html");
  for (const char* section : {"decisions", "gains", "learning-curves", "strata", "pooled", "reading"})
    EXPECT_THAT(html, HasSubstr(fmt::format("id=\"{}-section\"", section)));
  const Json summary = read_json_file(folder.path() / "one" / "summary.json");
  EXPECT_EQ(summary.at("pooled").size(), 1u);
  const Json& first = summary.at("runs").at("bft against plain on Beauty (sasrec)");
  EXPECT_TRUE(first.at("decisions").at("hr@10").contains("p_holm"));
  EXPECT_EQ(first.at("split"), "split-Beauty0");
}

TEST(CompareReport, TableNumbersDoNotJump) {
  const TemporaryFolder folder;
  Page({with_seeds(2, {"plain", "bft", "gate", "popularity"})}).write(folder.path());
  const std::string html = read_text_file(folder.path() / "report.html");
  // Tables 1 and 2 are open, the others are named by the titles of their folds.
  EXPECT_THAT(html, AllOf(HasSubstr("<summary>Every test of these gains (Table 3)</summary>"),
                          HasSubstr("<summary>bft against plain on made (SASRec) (Tables 4 to 7)</summary>"),
                          HasSubstr("(Tables 12 to 15)</summary>"), Not(HasSubstr("Table 16"))));
  EXPECT_LT(html.find("id=\"table-decisions\""), html.find("id=\"table-comparison\""));
}

TEST(CompareReport, ATableOfAnEarlierReportDoesNotStay) {
  const TemporaryFolder folder;
  Page({on("one"), on("two", 1)}).write(folder.path());
  ASSERT_TRUE(fs::exists(folder.path() / "tables" / "pooled.tex"));
  Page({on("one")}).write(folder.path());
  EXPECT_FALSE(fs::exists(folder.path() / "tables" / "pooled.tex"));
  EXPECT_FALSE(fs::exists(folder.path() / "learning-curves-2.svg"));
  EXPECT_TRUE(fs::exists(folder.path() / "tables" / "strata.csv"));
}

TEST(CompareReport, ComparisonsOfOneTitleAreToldApartByTheirSplit) {
  const TemporaryFolder folder;
  Page({on("made"), on("made", 1)}).write(folder.path());
  const std::string html = read_text_file(folder.path() / "report.html");
  EXPECT_THAT(html, AllOf(HasSubstr("(SASRec), split split-made0"), HasSubstr("(SASRec), split split-made1")));
  EXPECT_THAT(html, Not(HasSubstr("could not be made")));
}

}  // namespace compare_report_test
}  // namespace gainlens::reports
