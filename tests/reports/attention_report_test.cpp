// The words, figures and page of a sweep of recommenders.
#include "reports/attention/attention_report.h"
#include "reports/terminal/attention_terminal.h"
#include "runfile/made_attention_run.h"
#include "support/file_bytes.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gainlens::reports {
namespace attention_report_test {

using analyses::AttentionReading;
using analyses::UserGrouping;
using gainlens::testing::bytes_of;
using gainlens::testing::made_attention_run;
using gainlens::testing::MadeSweep;
using gainlens::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(AttentionTerminal, SaysWhatTheIntervalsSay) {
  MadeSweep made;
  made.users = 300;
  const std::vector<AttentionReading> readings = analyses::attention_evidence(made_attention_run(made), {});
  const std::string plain = print_attention(readings[0]);
  EXPECT_THAT(plain, AllOf(HasSubstr("arm plain, seeds 0, 1, 2: 300 users, the position that ranks\n"),
                           HasSubstr("\n  head                   0.0 "), HasSubstr("\n  n_eff / keys "),
                           HasSubstr("With a longer history, the share n_eff / keys falls in "),
                           HasSubstr("With a more frequent last item, at equal length of history, K rises in "),
                           HasSubstr("\n  To try: these numbers say what the heads rest on, and not what they are"),
                           HasSubstr("95%: over other trainings and other users"), Not(HasSubstr("K of the model   ")),
                           Not(HasSubstr("MASK")), Not(HasSubstr(" \n"))));
  EXPECT_THAT(print_attention(readings[1]), HasSubstr("\n  K of the model "));
  made.masked = true;
  made.seeds = {0};
  made.users = 40;
  EXPECT_THAT(print_attention(analyses::attention_evidence(made_attention_run(made), {})[0]),
              AllOf(HasSubstr("\n  mass of MASK "), HasSubstr("with these models"), HasSubstr("arm plain, seed 0: ")));
}

TEST(AttentionReport, HasFiguresTablesAndASummary) {
  const TemporaryFolder folder;
  const runfile::AttentionRun run = made_attention_run();
  const std::vector<AttentionReading> readings = analyses::attention_evidence(run, {});
  const WrittenReport written = write_attention_report(run, readings, folder.path() / "page");
  EXPECT_TRUE(written.left_out.empty());
  EXPECT_TRUE(written.failed.empty());
  const std::string page = bytes_of(folder.path() / "page/report.html");
  EXPECT_THAT(
      page, AllOf(HasSubstr("How much evidence does each head rest on?"), HasSubstr("the last item of the history"),
                  HasSubstr("Intervals (95%) are over users and trainings."), HasSubstr("plain 0, 1, 2; bft 0, 1, 2")));
  EXPECT_THAT(bytes_of(folder.path() / "page/evidence-by-length.svg"), HasSubstr("known items"));
  EXPECT_THAT(bytes_of(folder.path() / "page/summary.json"), HasSubstr("partial_rho_given_history_length"));
  EXPECT_THAT(bytes_of(folder.path() / "page/tables/run-2/user-attention.csv"),
              AllOf(HasSubstr("layer,head,number,grouping,group,users,"), HasSubstr("\n0,0,n_eff,all,,60,,,"),
                    HasSubstr("\n1,1,model_gain,test_item,5,")));
  EXPECT_THAT(bytes_of(folder.path() / "page/tables/run-1/user-attention-correlations.csv"),
              AllOf(HasSubstr("\n0,1,kalman_gain,last_item_count,"), Not(HasSubstr("model_gain"))));
}

TEST(AttentionReport, FiguresThatCannotBeDrawnSayWhy) {
  MadeSweep made;
  made.layers = 5;
  made.heads = 5;
  const runfile::AttentionRun run = made_attention_run(made);
  const std::vector<AttentionReading> readings = analyses::attention_evidence(run, {});
  std::vector<SweptArm> arms = {{&readings[0], &run}};
  EXPECT_THAT(attention_figure(arms, "f", UserGrouping::history_length, {"n_eff"}).reason(),
              HasSubstr("25 panels in 5 columns"));
  EXPECT_THAT(attention_figure(arms, "f", UserGrouping::history_length, {"model_gain"}).reason(),
              HasSubstr("no arm has such a number"));
  arms.assign(7, arms.front());
  EXPECT_THAT(attention_figure(arms, "f", UserGrouping::history_length, {"n_eff"}).reason(),
              HasSubstr("7 arms; 6 can be told apart"));
}

}  // namespace attention_report_test
}  // namespace gainlens::reports
