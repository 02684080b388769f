#include "reports/series/series_report.h"

#include "analyses/synthetic_run.h"
#include "core/json.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::reports {
namespace series_report_test {

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
  const std::vector<RunInput> inputs = {{"step-0", a}, {"<i>10", b}, {"step-200", c}};
  for (const bool by_step : {true, false}) {
    const analyses::Series series = analyses::series(runs, by_step);
    const auto figure = series_figure(series);
    ASSERT_TRUE(figure);
    EXPECT_THAT(figure->script, HasSubstr("entropy (nats)"));
    EXPECT_EQ(figure->script.find("training step") != std::string::npos, by_step);
    EXPECT_EQ(figure->script.find("set xtics (\"step-0\" 0") != std::string::npos, !by_step);
    const auto out = folder.path() / (by_step ? "by-step" : "by-name");
    EXPECT_TRUE(write_series_report(series, inputs, out, {}).failed.empty());
    const std::string page = read_text_file(out / "report.html");
    EXPECT_THAT(page, HasSubstr("<title>weights aaaaaaaaaaaa to weights cccccccccccc (3 in all) on text "));
    EXPECT_THAT(page, HasSubstr("figure-series-layers"));
    EXPECT_THAT(page, HasSubstr("A series of 3 runs"));
    EXPECT_THAT(page, Not(HasSubstr("<i>10")));
    EXPECT_THAT(
        read_text_file(out / "tables" / "series.csv"),
        HasSubstr("run,place,tokens,quantity,unit,mean,difference_from_first,low,high,pairs\nstep-0,0,128,n_eff,"));
    EXPECT_THAT(read_text_file(out / "tables" / "series-heads.csv"),
                HasSubstr("run,place,tokens,layer,head,quantity,unit,mean,difference_from_first,low,high,pairs\n"
                          "step-0,0,128,0,0,bos_mass,"));
    const auto layers = series_layers_figure(series);
    ASSERT_TRUE(layers);
    EXPECT_THAT(layers->script, HasSubstr("$layer_0_1 using 1:2"));
  }
}

/// K of three chunks is .8, .9, 1 in the first run and 1 in the second: the interval of the change passes 0.2.
TEST(SeriesReport, BarsEndWhereAQuantityCanGoNoFarther) {
  const TemporaryFolder folder;
  const auto with_k = [&](char weights, bool one) {
    SyntheticRun run;
    run.lengths = {64};
    run.layers = 2;
    run.weights = weights;
    run.value = [one](const gainlens::testing::CellKey& key) -> std::optional<double> {
      if (key.name == "summary/kalman_gain") return one ? 1 : 0.8 + 0.1 * static_cast<double>(key.sample);
      return std::nullopt;
    };
    return gainlens::testing::write_run(folder.path() / std::string(1, weights), run);
  };
  const auto a = with_k('a', false), b = with_k('b', true);
  const analyses::Series series = analyses::series(std::vector<analyses::SeriesRun>{{"0", a}, {"9", b}}, true);
  const auto& k = *std::ranges::find(series.points.back().quantities, "kalman_gain",
                                     [](const auto& one) { return one.quantity.name; });
  ASSERT_TRUE(k.interval);
  ASSERT_GT(*k.second - *k.difference + k.interval->high, 1.05);
  const std::string script = series_figure(series)->script;
  std::size_t rows = 0;
  // Of every panel: no bar is above 1 where the mean is a share, and no axis begins below 0.
  for (std::size_t at = script.find("set yrange ["); at != std::string::npos;
       at = script.find("set yrange [", at + 1)) {
    EXPECT_NE(script[at + 12], '-') << script.substr(at, 40);
    ++rows;
  }
  EXPECT_GT(rows, 5u);
  EXPECT_THAT(script, HasSubstr("\n9 1 "));
  EXPECT_THAT(script, Not(::testing::ContainsRegex("\n9 1 [0-9.]+ 1\\.[0-9]")));
}

}  // namespace series_report_test
}  // namespace gainlens::reports
