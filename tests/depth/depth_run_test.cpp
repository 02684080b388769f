// The file, its means over chunks, and the table.
#include "runfile/depth_run.h"
#include "analyses/depth.h"
#include "core/error.h"
#include "core/json.h"
#include "reports/sweep/depth_section.h"
#include "support/file_bytes.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gainlens {
namespace depth_run_test {

using runfile::DepthChunk;
using runfile::DepthLayer;
using runfile::DepthQuantiles;
using runfile::DepthRun;
using testing::bytes_of;
using ::testing::HasSubstr;
using testing::TemporaryFolder;
using ::testing::ThrowsMessage;
using testing::write_file;

DepthQuantiles around(double median) {
  return {median - 2, median - 1, median, median + 1, median + 2};
}

runfile::DepthCarried carried(double first) {
  runfile::DepthCarried all{};
  for (auto& by_start : all) {
    for (DepthQuantiles& quantiles : by_start) quantiles = around(first++);
  }
  return all;
}

DepthRun some_run() {
  DepthRun run{.request = "ab", .chunks = {}};
  for (const std::int64_t sample : {0, 1}) {
    DepthChunk chunk{.length = 64, .sample = sample, .queries = 16};
    for (const std::int64_t layer : {0, 1}) {
      const auto add = static_cast<double>(2 * sample);
      DepthLayer found{layer, carried(10 + add), carried(20), around(5), around(50), around(0.25), std::nullopt};
      if (sample == 0) found.truth = runfile::DepthTruth{around(0.5), around(3), around(4)};
      chunk.layers.push_back(found);
    }
    chunk.last = carried(30);
    run.chunks.push_back(chunk);
  }
  return run;
}

TEST(DepthRun, IsReadAsItWasWritten) {
  const TemporaryFolder folder;
  EXPECT_EQ(runfile::read_depth_run(folder.path()), std::nullopt);
  write_depth_run(folder.path(), some_run());
  EXPECT_EQ(runfile::read_depth_run(folder.path()), some_run());
  const std::string bytes = bytes_of(folder.path() / "depth.json");
  write_depth_run(folder.path(), *runfile::read_depth_run(folder.path()));
  EXPECT_EQ(bytes_of(folder.path() / "depth.json"), bytes);
}

TEST(DepthRun, RefusesADamagedFile) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "depth.json";
  write_depth_run(folder.path(), some_run());
  std::filesystem::remove(folder.path() / "depth.json.sha256");  // as earlier versions wrote it
  const Json whole = read_json_file(path);
  const auto refused = [&](const std::string& pointer, const Json& value, const std::string& words) {
    Json broken = whole;
    broken[Json::json_pointer(pointer)] = value;
    write_file(path, broken.dump());
    EXPECT_THAT([&] { runfile::read_depth_run(folder.path()); },
                ThrowsMessage<InvalidArgument>(::testing::AllOf(HasSubstr(words), HasSubstr("--depth-precision"))));
  };
  refused("/version", 3, "another format or version");
  refused("/version", 1, "is of version 1, whose error of the diagonal rule rested on drawn errors");
  refused("/starts", Json::array({1}), "other quantiles");
  refused("/chunks", Json::array(), "no chunks");
  refused("/chunks/0/layers/1/layer", 5, "no gap");
  refused("/chunks/0/layers/1/observed", Json::array({1, 2}), "5 quantiles");
  refused("/chunks/0/layers/1/observed/0", 1e9, "ascend");
  refused("/chunks/0/layers/1/observed/0", "x", "damaged");
  refused("/chunks/0/layers/0/gain/filter", Json::array(), "3 starts");
  refused("/chunks/1/layers", Json::array(), "no layers");
  refused("/chunks/0/length", 0, "a length");
}

TEST(DepthRun, IsComparedWithItsChecksum) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "depth.json";
  write_depth_run(folder.path(), some_run());
  const std::string whole = bytes_of(path);
  std::string changed = whole;
  changed[whole.size() / 2] = static_cast<char>(changed[whole.size() / 2] ^ 1);
  write_file(path, changed);
  EXPECT_THAT([&] { runfile::read_depth_run(folder.path()); },
              ThrowsMessage<InvalidArgument>(
                  ::testing::AllOf(HasSubstr("depth.json: its sha256 is "), HasSubstr("depth.json.sha256 says "))));
  std::filesystem::remove(path);
  EXPECT_EQ(runfile::read_depth_run(folder.path()), std::nullopt);
  write_depth_run(folder.path(), some_run());
  EXPECT_EQ(bytes_of(path), whole);
  EXPECT_EQ(runfile::read_depth_run(folder.path()), some_run());
}

TEST(DepthByLength, TakesMeansOverChunks) {
  const std::vector<analyses::DepthAtLength> lengths = analyses::depth_by_length(some_run());
  ASSERT_EQ(lengths.size(), 1u);
  EXPECT_EQ(lengths[0].tokens, 64);
  EXPECT_EQ(lengths[0].samples, 2);
  ASSERT_EQ(lengths[0].layers.size(), 2u);
  const analyses::DepthRow& row = lengths[0].layers[1];
  EXPECT_DOUBLE_EQ(row.variance[0][0], 11);  // 10 and 12
  EXPECT_DOUBLE_EQ(row.variance[1][2], 16);
  EXPECT_DOUBLE_EQ(row.gain[0][1], 21);
  EXPECT_DOUBLE_EQ(row.observed, 5);
  EXPECT_DOUBLE_EQ(row.bound, 50);
  EXPECT_EQ(row.jacobian, around(0.25));
  ASSERT_TRUE(row.truth);
  EXPECT_EQ(row.truth->sum_ratio, around(3));
  EXPECT_DOUBLE_EQ(lengths[0].last[1][0], 33);
}

TEST(PrintDepth, ShowsEveryLayer) {
  const std::string text = reports::print_depth(some_run());
  EXPECT_THAT(text, HasSubstr("64 tokens, 2 chunks"));
  EXPECT_THAT(text, ::testing::ContainsRegex("\n    1 +5 +\\+0.250 +21 +24 +"));
  EXPECT_THAT(text, HasSubstr("+50% [-150, +250]"));
  EXPECT_THAT(analyses::last_layer_words(analyses::depth_by_length(some_run()).back()),
              HasSubstr("K of the last layer where the first P is 0.1 times that: 20 (filter)"));
}

}  // namespace depth_run_test
}  // namespace gainlens
