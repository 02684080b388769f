// The page of `gainlens compare --out`. Expected numbers are computed from the ranks here (ranks_by_hand.h).
#include "reports/recommend/compare_report.h"

#include "core/atomic_file.h"
#include "ranks_by_hand.h"
#include "reports/recommend/sections.h"
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
namespace {

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

analyses::RecommenderOptions few_resamples() {
  analyses::RecommenderOptions options;
  options.resamples.count = 50;
  return options;
}

analyses::ArmComparison compared(const runfile::RecommendRun& run) {
  const auto shared = std::make_shared<const runfile::RecommendRun>(run);
  std::vector<analyses::RecommenderArm> arms = {{"run", shared, 0}, {"run", shared, 1}};
  analyses::name_arms(arms);
  return analyses::compare_arms({arms[0], arms[1]}, few_resamples());
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
  explicit Page(const std::vector<runfile::RecommendRun>& runs) {
    for (const runfile::RecommendRun& run : runs) comparisons_.push_back(compared(run));
    pooled_ = analyses::pool_comparisons(comparisons_, few_resamples());
    for (const analyses::ArmComparison& comparison : comparisons_)
      arms_.push_back({comparison, &pooled_, comparison.title()});
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

TEST(CompareGains, TheTableOfThePaperHoldsMeansChangesAndP) {
  const runfile::RecommendRun run = on("made");
  const PaperTable table = Page({run}).blocks<PaperTable>(gains_section()).at(0);
  ASSERT_EQ(table.rows.size(), 1u);
  std::vector<std::string> expected = {"made"};
  for (const char* metric : metrics) {
    const auto one = over(by_seed(run, 0, metric)), other = over(by_seed(run, 1, metric));
    expected.push_back(printed(one));
    expected.push_back(printed(other));
    expected.push_back(printed_change(other.mean / one.mean - 1));
    expected.push_back(printed_p(paired_p(run, metric)));
  }
  EXPECT_EQ(table.rows[0], expected);
}

TEST(CompareGains, ThePaperStandsBelowItsDataSet) {
  const PaperTable table = Page({on("Beauty"), on("other", 1)}).blocks<PaperTable>(gains_section()).at(0);
  ASSERT_EQ(table.rows.size(), 3u);  // two data sets of one table; the paper has one of them
  EXPECT_THAT(table.rows[1],
              ElementsAre("paper", ".0881 (.0018)", ".0890 (.0009)", "+1.0%", ".087", ".0504 (.0010)", ".0506 (.0008)",
                          "+0.5%", ".361", ".0453 (.0007)", ".0455 (.0008)", "+0.5%", ".392"));
}

TEST(CompareGains, ErrorsAreOfTheChangeOfTheMeans) {
  const runfile::RecommendRun run = on("made");
  const PaperTable table = Page({run}).blocks<PaperTable>(gains_section()).at(1);
  ASSERT_EQ(table.rows.size(), 4u);  // a heading and three metrics
  for (std::size_t i = 0; i < 3; ++i) {
    const double one = over(by_seed(run, 0, metrics[i])).mean, other = over(by_seed(run, 1, metrics[i])).mean;
    EXPECT_EQ(table.rows[1 + i][0], metrics[i]);
    EXPECT_EQ(table.rows[1 + i][1], printed_change(other / one - 1));
    EXPECT_EQ(table.rows[1 + i][4], printed_p(paired_p(run, metrics[i])));
  }
}

TEST(CompareStrata, ChangesAreThoseOfTheUsersOfTheGroup) {
  const runfile::RecommendRun run = on("made");
  const std::vector<std::size_t> fifth = fifth_of_items(run);
  const PaperTable table = Page({run}).blocks<PaperTable>(strata_section()).at(0);
  ASSERT_EQ(table.rows.size(), 5u);
  for (std::size_t group = 0; group < 5; ++group) {
    const auto takes = [&](std::size_t user) { return fifth[user] == group; };
    EXPECT_EQ(table.rows[group][1], std::to_string(std::count(fifth.begin(), fifth.end(), group)));
    for (std::size_t i = 0; i < 3; ++i) {
      const double one = over(by_seed(run, 0, metrics[i], takes)).mean;
      const double other = over(by_seed(run, 1, metrics[i], takes)).mean;
      const std::string expected = one > 0 ? printed_change(other / one - 1) : "–";
      EXPECT_EQ(table.rows[group][4 + 3 * i], expected) << metrics[i] << " in group " << group;
      EXPECT_EQ(table.rows[group][6 + 3 * i], "–");  // nothing of the paper
    }
  }
}

TEST(CompareStrata, ThePaperHasStrataOfSports) {
  const PaperTable table = Page({on("Sports")}).blocks<PaperTable>(strata_section()).at(0);
  EXPECT_EQ(table.rows[0][9], "+17.1%");  // ndcg@10 of the rarest items: bft.tex, Table cold-item
}

TEST(CompareStrata, TheCsvFileHoldsMeansOfBothArms) {
  const runfile::RecommendRun run = on("made");
  const std::vector<std::size_t> fifth = fifth_of_items(run);
  const CsvTable table = strata_section().tables(Page({run}).arms()).at(0);
  EXPECT_EQ(table.header[7], "baseline_mean");
  for (std::size_t i = 0; i < 5; ++i) {  // hr@10 by item frequency comes first
    const auto takes = [&](std::size_t user) { return fifth[user] == i; };
    EXPECT_NEAR(std::get<double>(table.rows[i][7]), over(by_seed(run, 0, "hr@10", takes)).mean, 1e-6);
    EXPECT_NEAR(std::get<double>(table.rows[i][8]), over(by_seed(run, 1, "hr@10", takes)).mean, 1e-6);
  }
}

TEST(CompareLearningCurves, BothArmsAreDrawnWithTheirLoss) {
  const CaptionedFigure figure = Page({on("made")}).blocks<CaptionedFigure>(learning_curves_section()).at(0);
  ASSERT_TRUE(figure.figure) << figure.figure.reason();
  for (const char* block : {"$loss_0_0 <<", "$loss_mean_1 <<", "$metric_1_2 <<", "$metric_best_1 <<"})
    EXPECT_THAT(figure.figure->script, HasSubstr(block));
  EXPECT_THAT(figure.caption.shows, HasSubstr("bft against plain on made (sasrec). (a) The mean training loss"));
}

TEST(ComparePooled, FisherIsOfTheProductOfBothP) {
  const runfile::RecommendRun one = on("one"), two = on("two", 1);
  const Page page({one, two});
  const std::vector<PaperTable> tables = page.blocks<PaperTable>(pooled_section());
  ASSERT_EQ(tables.size(), 2u);
  ASSERT_EQ(tables[0].rows.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    const double first = paired_p(one, metrics[i]), second = paired_p(two, metrics[i]), product = first * second;
    // -2 ln of the product is chi-square with 4 degrees of freedom.
    EXPECT_EQ(tables[0].rows[i][1], printed_p(product * (1 - std::log(product)))) << metrics[i];
    // Holm: the smaller p twice, the larger at least that.
    EXPECT_EQ(tables[1].rows[0][1 + 2 * i], printed_p(first < second ? 2 * first : std::max(first, 2 * second)));
  }
  EXPECT_THAT(Page({one}).blocks<PaperTable>(pooled_section()), IsEmpty());
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
  for (const char* name :
       {"report.html", "summary.json", "learning-curves.svg", "learning-curves.pdf", "learning-curves.png",
        "learning-curves-2.svg", "tables/comparison.tex", "tables/gains.tex", "tables/strata-items.tex",
        "tables/strata-users-2.tex", "tables/pooled.tex", "tables/pooled-holm.tex", "tables/run-1/comparison.csv",
        "tables/run-2/strata.csv", "tables/run-2/learning-curves.csv"})
    EXPECT_THAT(names, Contains(name));
  const std::string html = read_text_file(folder.path() / "one" / "report.html");
  for (const char* section : {"gains", "learning-curves", "strata", "pooled", "reading"})
    EXPECT_THAT(html, HasSubstr(fmt::format("id=\"{}-section\"", section)));
  const Json summary = read_json_file(folder.path() / "one" / "summary.json");
  EXPECT_EQ(summary.at("pooled").size(), 1u);
  EXPECT_TRUE(summary.at("runs").contains("bft against plain on Beauty (sasrec)"));
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
  EXPECT_THAT(html, AllOf(HasSubstr("(sasrec), split split-made0"), HasSubstr("(sasrec), split split-made1")));
  EXPECT_THAT(html, Not(HasSubstr("could not be made")));
}

}  // namespace
}  // namespace gainlens::reports
