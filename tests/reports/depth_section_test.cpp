#include "reports/sweep/depth_section.h"

#include "analyses/synthetic_run.h"
#include "core/error.h"
#include "core/sha256.h"
#include "reports/sweep/sections.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gainlens::reports {
namespace depth_section_test {

using gainlens::testing::report_run;
using gainlens::testing::TemporaryFolder;
using gainlens::testing::write_run;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

runfile::DepthQuantiles around(double median) {
  return {median - 2, median - 1, median, median + 1, median + 2};
}

runfile::DepthCarried carried(double first) {
  runfile::DepthCarried all{};
  for (auto& by_start : all) {
    for (runfile::DepthQuantiles& quantiles : by_start) quantiles = around(first++);
  }
  return all;
}

class DepthSection : public ::testing::Test {
 protected:
  void store(const std::string& request) const {
    runfile::DepthChunk chunk{.length = 64, .sample = 0, .queries = 16};
    for (const std::int64_t layer : {0, 1}) {
      chunk.layers.push_back({layer, carried(10), carried(20), around(5), around(50), around(0.25),
                              runfile::DepthTruth{around(0.5), around(3), around(4)}});
    }
    chunk.last = carried(40);
    runfile::write_depth_run(folder_.path() / "run", {request, {chunk}});
  }
  std::string request() const { return sha256_file(folder_.path() / "run" / "request.json"); }
  OrderedJson json_of(const SweepRun& run) const {
    OrderedJson summary = OrderedJson::object();
    depth_section.add_json(run, summary);
    return summary;
  }

  TemporaryFolder folder_;
  runfile::RunReader reader_ = write_run(folder_.path() / "run", report_run());
  SweepRun run_{RunInput{"a", reader_}, analyses::Options{}};
};

TEST_F(DepthSection, IsLeftOutWithoutTheFile) {
  EXPECT_THAT(depth_section.blocks({&run_, 1}), IsEmpty());
  EXPECT_THAT(depth_section.tables(run_), IsEmpty());
  EXPECT_TRUE(json_of(run_).empty());
}

TEST_F(DepthSection, ShowsEveryLayer) {
  store(request());
  const std::vector<Block> blocks = depth_section.blocks({&run_, 1});
  ASSERT_THAT(blocks, SizeIs(3));
  EXPECT_THAT(std::get<PaperTable>(blocks[1]).rows, SizeIs(2));
  EXPECT_EQ(std::get<PaperTable>(blocks[1]).rows[1][3], "21");  // K of the reading "filter"
  const auto& drawn = std::get<CaptionedFigure>(blocks[0]);
  ASSERT_TRUE(drawn.figure);
  EXPECT_EQ(drawn.figure->name, "depth");
  EXPECT_THAT(drawn.caption.shows, HasSubstr("In the last layer K is 21 (filter) and 24 (gain-one)"));
  const std::vector<CsvTable> tables = depth_section.tables(run_);
  ASSERT_THAT(tables, SizeIs(1));
  ASSERT_THAT(tables[0].rows, SizeIs(2));
  EXPECT_EQ(tables[0].header.size(), 17u);
  const std::vector<Cell>& row = tables[0].rows[1];
  ASSERT_EQ(row.size(), 17u);
  EXPECT_EQ(std::get<double>(row[5]), 10);
  EXPECT_EQ(std::get<double>(row[16]), 25);
  EXPECT_EQ(json_of(run_).at("depth").at(0).at("layers").at(1).at("gain").at("gain-one").at(1), 24);
}

TEST_F(DepthSection, SaysThatTheFileIsOfAnotherSweep) {
  store("another");
  const std::vector<Block> blocks = depth_section.blocks({&run_, 1});
  ASSERT_THAT(blocks, SizeIs(1));
  EXPECT_THAT(std::get<CaptionedFigure>(blocks[0]).figure.reason(), HasSubstr("not of this sweep"));
}

TEST(DepthFigure, LeavesOutTheErrorThatWasNotMeasured) {
  analyses::DepthAtLength length{.tokens = 64, .samples = 1, .layers = {{.layer = 0}}};
  EXPECT_THAT(depth_figure(length).script, Not(HasSubstr("diagonal rule")));
  length.layers[0].truth.emplace();
  EXPECT_THAT(depth_figure(length).script, HasSubstr("diagonal rule"));
}

}  // namespace depth_section_test
}  // namespace gainlens::reports
