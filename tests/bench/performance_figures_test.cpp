#include "bench/performance_figures.h"

#include "core/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gainlens::bench {
namespace performance_figures_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

PerformancePoint point(std::string method, std::int64_t tokens, std::int64_t head_dim, double seconds) {
  return {.method = std::move(method),
          .tokens = tokens,
          .head_dim = head_dim,
          .group = 1,
          .window = {},
          .seconds = seconds,
          .seconds_low = 0.9 * seconds,
          .seconds_high = 1.2 * seconds,
          .ratio = 1.25,
          .peak_bytes = 3 << 20};
}

TEST(PerformanceRatioFigure, HasALineForEachShapeByAscendingLength) {
  std::vector<PerformancePoint> points = {point("statistics", 1024, 128, 2), point("statistics", 512, 128, 1),
                                          point("statistics", 512, 64, 1)};
  points.back().group = 4;
  points.back().window = 256;
  const Figure figure = performance_ratio_figure(points);
  EXPECT_EQ(figure.name, "performance-ratio");
  EXPECT_EQ(figure.width, reports::column_width);
  EXPECT_THAT(figure.script, HasSubstr("$ratio_0 << EOD\n512 1.25 NaN NaN\n1024 1.25 NaN NaN\nEOD"));
  EXPECT_THAT(figure.script, HasSubstr("$ratio_1 << EOD\n512 1.25 NaN NaN\nEOD"));
  EXPECT_THAT(figure.script, AllOf(HasSubstr("{/:Italic d} 64, group 4, window 256"), Not(HasSubstr("$ratio_2"))));
}

TEST(PerformanceCostFigure, HasALineForEachMethodInBothPanels) {
  std::vector<PerformancePoint> points = {point("libtorch SDPA", 512, 128, 1), point("statistics", 512, 128, 2)};
  points.push_back(points.back());
  points.back().window = 128;
  const Figure figure = performance_cost_figure(points);
  EXPECT_EQ(figure.width, reports::page_width);
  EXPECT_THAT(figure.script, HasSubstr("$seconds_1 << EOD\n512 2 1.8 2.4\nEOD"));
  EXPECT_THAT(figure.script, HasSubstr("$memory_1 << EOD\n512 3 NaN NaN\nEOD"));  // MiB
  EXPECT_THAT(figure.script, HasSubstr("\"statistics, window 128\""));
}

TEST(PerformanceCostFigure, NothingIsLeftOffALogarithmicAxis) {
  EXPECT_THAT([] { performance_cost_figure({point("statistics", 512, 128, 0)}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("0 for statistics at T = 512")));
}

TEST(PerformanceFigures, MoreLinesThanStylesAreRefused) {
  std::vector<PerformancePoint> points;
  for (std::int64_t dim = 16; dim < 16 + 8 * 7; dim += 8) points.push_back(point("statistics", 512, dim, 1));
  EXPECT_THAT([&] { performance_ratio_figure(points); },
              ThrowsMessage<InvalidArgument>(HasSubstr("7 lines; at most 6")));
}

}  // namespace performance_figures_test
}  // namespace gainlens::bench
