// The page of `gainlens report` of a fine-tuning.
#include "reports/finetune/finetune_report.h"

#include "analyses/made_noise_run.h"
#include "support/file_bytes.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>

namespace gainlens::reports {
namespace {

using gainlens::testing::bytes_of;
using gainlens::testing::made_noise_run;
using gainlens::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const analyses::ExperimentOptions few_resamples{.resamples = {.count = 50, .seed = 7}};

FinetunedRun finetuned(const runfile::ExperimentRun& run) {
  return {"made",
          analyses::noise_levels("run", std::make_shared<const runfile::ExperimentRun>(run), {}, few_resamples),
          {},
          {{"focal/np0", {{0.6932, 0.6935}, {0.6933, 0.6937}}}}};
}

/// Two layers whose gain appears in the second epoch.
FilterOfLevel some_filter(double first) {
  FilterOfLevel filter{"bft/np0", std::vector<analyses::FilterLayer>(2)};
  for (analyses::FilterLayer& layer : filter.layers) {
    layer.mean["gain"] = {first, 0.8};
    layer.mean["precision"] = {first, 1.5};
  }
  filter.start_loss = {2.25, 2.26};
  filter.start_loss_with_filter = {3.5, 3.75};
  return filter;
}

TEST(FinetuneReport, HasFiguresTablesAndASummary) {
  const TemporaryFolder folder;
  FinetunedRun run = finetuned(made_noise_run({.selection = 10}));
  run.filters = {some_filter(std::numeric_limits<double>::quiet_NaN())};
  run.paper_task = "squad";
  const WrittenReport written = write_finetune_report(run, folder.path(), {});
  EXPECT_THAT(written.failed, IsEmpty());
  EXPECT_THAT(written.left_out, IsEmpty());
  const std::string page = bytes_of(folder.path() / "report.html");
  EXPECT_THAT(page, AllOf(HasSubstr("Fine-tuning on noisy answers"), HasSubstr("40% wrong words"),
                          HasSubstr("all 3 levels"), HasSubstr("all levels but 10%"), HasSubstr("F1 of the paper"),
                          HasSubstr("0.3590 (0.0290)"), HasSubstr("The first 10 questions chose the best epoch too"),
                          HasSubstr("Better than sft after Holm")));
  EXPECT_THAT(page, HasSubstr("0.69325, 0.69360"));                    // gamma: means over seeds, rounded
  EXPECT_THAT(page, AllOf(HasSubstr("2.2550"), HasSubstr("3.6250")));  // the losses before training
  EXPECT_THAT(bytes_of(folder.path() / "tables" / "start.csv"), HasSubstr("bft/np0,1,2.26,3.75"));
  const Json summary = Json::parse(bytes_of(folder.path() / "summary.json"));
  EXPECT_EQ(summary.at("noise_levels").at("gains").size(), 7u);
  EXPECT_TRUE(summary.at("noise_levels").at("gains")[3].at("comparison").at("scores").at("f1").contains("decision"));
  EXPECT_FALSE(summary.at("noise_levels").at("gains")[4].at("comparison").at("scores").at("f1").contains("decision"));
  const std::string gains = bytes_of(folder.path() / "tables" / "noise-gains.csv");
  EXPECT_THAT(gains, HasSubstr("bft,sft,all 3 levels,f1,5,50,"));
  for (const char* name : {"noise-levels.svg", "noise-gains.svg", "filter-by-layer.svg"})
    EXPECT_TRUE(std::filesystem::exists(folder.path() / name)) << name;
}

TEST(FinetuneReport, OneArmHasNoGains) {
  const TemporaryFolder folder;
  runfile::ExperimentRun run = made_noise_run({.seeds = {0}});
  run.arms.resize(3);
  run.results.resize(3);
  const WrittenReport written = write_finetune_report(finetuned(run), folder.path(), {});
  EXPECT_THAT(written.failed, IsEmpty());
  EXPECT_THAT(bytes_of(folder.path() / "report.html"), ::testing::Not(HasSubstr("Who is better")));
}

TEST(FinetuneReport, AFilterThatNeverActedHasNoFigure) {
  constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
  FilterOfLevel filter = some_filter(nothing);
  for (analyses::FilterLayer& layer : filter.layers) layer.mean["gain"] = {nothing, nothing};
  EXPECT_FALSE(filter_by_layer_figure(filter));
  EXPECT_TRUE(filter_by_layer_figure(some_filter(0.7)));
}

}  // namespace
}  // namespace gainlens::reports
