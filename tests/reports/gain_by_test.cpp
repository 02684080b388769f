// What `gainlens gain-by` prints, draws and writes.
#include "reports/recommend/gain_by_report.h"

#include "analyses/arm_pairs.h"
#include "reports/figures/palette.h"
#include "reports/recommend/paper_numbers.h"
#include "runfile/made_recommend_run.h"
#include "support/file_bytes.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace gainlens::reports {
namespace gain_by_test {

using analyses::GainByCondition;
using gainlens::testing::bytes_of;
using gainlens::testing::made_recommend_run;
using gainlens::testing::MadeRecommender;
using gainlens::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// plain and bft under the conditions 0.25 and 1.
std::vector<GainByCondition> made_gains() {
  std::vector<analyses::ConditionGain> gains;
  for (const double condition : {0.25, 1.0}) {
    MadeRecommender made;
    made.users_seed = condition == 1 ? 1 : 2;
    const auto run = std::make_shared<const runfile::RecommendRun>(made_recommend_run(made));
    std::vector<analyses::RecommenderArm> arms = {{"run", run, 0}, {"run", run, 1}};
    analyses::name_arms(arms);
    analyses::RecommenderOptions options;
    options.metrics = {parse_ranking_metric("hr@10"), parse_ranking_metric("mrr")};
    options.resamples.count = 50;
    gains.push_back({condition, analyses::compare_arms({arms[0], arms[1]}, options), {}});
  }
  return analyses::gains_by_condition(std::move(gains));
}

TEST(GainBy, TheTableHasTheChangeOfEveryConditionWithItsInterval) {
  const std::vector<GainByCondition> gains = made_gains();
  const CandidateGains candidate{&gains[0], "share of items"};
  const std::string text = print_gain_by({&candidate, 1});
  EXPECT_THAT(text, StartsWith("Each arm against plain, by share of items.\narm  condition  metric  seeds"));
  for (const analyses::ConditionGain& point : gains[0].points) {
    for (const analyses::MetricGain& gain : point.comparison.metrics) {
      EXPECT_THAT(text, AllOf(HasSubstr(metric_number(gain.seeds.candidate.mean)),
                              HasSubstr(change_of_log(gain.log_ratio)), HasSubstr(change_interval(gain.log_ratio))));
    }
  }
}

TEST(GainBy, TheFigureHasAPanelForEachMetricAndABarForEachCondition) {
  const std::vector<GainByCondition> gains = made_gains();
  const std::vector<CandidateGains> two(2, CandidateGains{&gains[0], "share \"of\" items"});
  const auto figure = gain_by_figure(two);
  ASSERT_TRUE(figure) << figure.reason();
  EXPECT_THAT(figure->script, AllOf(HasSubstr("HR\\\\@10: change against plain (%)"), HasSubstr("$gain_0_0 "),
                                    HasSubstr("$gain_1_1 "), Not(HasSubstr("$gain_2_0 "))));
  const auto& change = gains[0].points[1].comparison.metrics[0].log_ratio;
  ASSERT_TRUE(change && change->interval);
  const std::string shifted = fmt::format("{} {} ", 1 - 0.5 * 0.012 * 0.75, 100 * std::expm1(change->value));
  EXPECT_THAT(figure->script, HasSubstr(shifted.substr(0, 8)));
  const std::vector<CandidateGains> many(max_runs + 1, two[0]);
  EXPECT_THAT(gain_by_figure(many).reason(), HasSubstr("can be told apart in one figure"));
}

TEST(GainBy, ThePageHasFigureTableAndSummary) {
  const TemporaryFolder folder;
  const std::vector<GainByCondition> gains = made_gains();
  const CandidateGains candidate{&gains[0], "share <of> items"};
  const WrittenReport written = write_gain_by_report({&candidate, 1}, folder.path());
  EXPECT_TRUE(written.failed.empty());
  EXPECT_TRUE(written.left_out.empty());
  for (const char* file : {"report.html", "gain-by.svg", "summary.json"})
    EXPECT_TRUE(std::filesystem::exists(folder.path() / file)) << file;
  EXPECT_THAT(bytes_of(folder.path() / "report.html"),
              AllOf(HasSubstr("share &lt;of&gt; items"), HasSubstr("their errors go together"),
                    HasSubstr("<th scope=\"row\" class=\"text\">bft</th><td>0.25</td><td class=\"text\">hr@10</td>")));
  const std::string csv = bytes_of(folder.path() / "tables/gain-by.csv");
  EXPECT_THAT(csv, StartsWith("candidate,condition,metric,seeds,baseline,candidate_mean,change,low,high,p,holm\n"
                              "bft,0.25,hr@10,3,"));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 5);
  EXPECT_THAT(bytes_of(folder.path() / "summary.json"), HasSubstr("\"axis\": \"share <of> items\""));
}

}  // namespace gain_by_test
}  // namespace gainlens::reports
