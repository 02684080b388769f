#include "reports/series/series_report.h"

#include "analyses/synthetic_run.h"
#include "core/json.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gainlens::reports {
namespace {

using gainlens::testing::SyntheticRun;
using gainlens::testing::TemporaryFolder;
using ::testing::HasSubstr;
using ::testing::Not;

runfile::RunReader run_of(const TemporaryFolder& folder, char weights) {
  SyntheticRun run;
  run.lengths = {64, 128};
  run.layers = 2;
  run.weights = weights;
  return gainlens::testing::write_run(folder.path() / std::string(1, weights), run);
}

TEST(SeriesReport, DrawsEveryQuantityAlongTheAxis) {
  const TemporaryFolder folder;
  const auto a = run_of(folder, 'a'), b = run_of(folder, 'b'), c = run_of(folder, 'c');
  const std::vector<analyses::SeriesRun> runs = {{"step-0", a}, {"<i>10", b}, {"step-200", c}};
  for (const bool by_step : {true, false}) {
    const analyses::Series series = analyses::series(runs, by_step);
    const auto figure = series_figure(series);
    ASSERT_TRUE(figure);
    EXPECT_THAT(figure->script, HasSubstr("entropy (nats)"));
    EXPECT_EQ(figure->script.find("training step") != std::string::npos, by_step);
    EXPECT_EQ(figure->script.find("set xtics (\"step-0\" 0") != std::string::npos, !by_step);
    const auto out = folder.path() / (by_step ? "by-step" : "by-name");
    EXPECT_TRUE(write_series_report(series, out, {}).failed.empty());
    const std::string page = read_text_file(out / "report.html");
    EXPECT_THAT(page, HasSubstr("A series of 3 runs"));
    EXPECT_THAT(page, Not(HasSubstr("<i>10")));
    EXPECT_THAT(
        read_text_file(out / "tables" / "series.csv"),
        HasSubstr("run,place,tokens,quantity,unit,mean,difference_from_first,low,high,pairs\nstep-0,0,128,n_eff,"));
  }
}

}  // namespace
}  // namespace gainlens::reports
