#include "cli/tiny_checkpoint.h"
#include "support/program.h"
#include "support/shared_data.h"

#include "core/json.h"
#include "core/scratch_folder.h"
#include "runfile/folder_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace gainlens::testing {
namespace report_command_test {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ReportCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string ids = write_ids(folder.path(), 400);
    for (const auto& [name, dtype] : {std::pair{one, "float32"}, std::pair{two, "float64"}}) {
      const ProgramResult swept = run_gainlens({"sweep", tiny_checkpoint.string(), "--tokens", ids, "--lengths",
                                                "32,64", "--samples", "2", "--dtype", dtype, "--out", name});
      ASSERT_EQ(swept.exit_code, 0) << swept.error;
    }
  }

  /// Expects one line on stderr with `text`, exit code 2, and that nothing is written.
  void expect_refused(const std::vector<std::string>& arguments, const std::string& text) const {
    std::vector<std::string> words = {"report"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    const ProgramResult result = run_gainlens(words);
    EXPECT_EQ(result.exit_code, 2) << result.error;
    EXPECT_THAT(result.error, StartsWith("gainlens: error: "));
    EXPECT_THAT(result.error, HasSubstr(text));
    EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
    EXPECT_FALSE(fs::exists(out));
  }

  TemporaryFolder folder;
  const std::string one = folder.path() / "one", two = folder.path() / "two", out = folder.path() / "out";
};

TEST_F(ReportCommand, SeveralRunsGiveOnePage) {
  const ProgramResult result = run_gainlens({"report", one, two, "--out", out, "--names", "single,double", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(parse_json(result.out, "stdout").at("report"), out + "/report.html");
  EXPECT_THAT(read_text_file(out + "/report.html"), HasSubstr("double less single, paired by chunk"));
  EXPECT_THAT(read_text_file(out + "/report.html"), HasSubstr("part of every difference is rounding"));
  // The words after --names are runs, not names.
  EXPECT_EQ(run_gainlens({"report", "--names", "single,double", one, two, "--out", out}).exit_code, 0);
}

TEST_F(ReportCommand, OneRunReportsIntoItsFolder) {
  const ProgramResult result = run_gainlens({"report", one});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(result.out, one + "/report/report.html\n");
  EXPECT_THAT(read_text_file(one + "/report/report.html"),
              HasSubstr("shards proven by sha256</th><td class=\"text\">4</td>"));
}

TEST_F(ReportCommand, RefusesWhatCannotBeReported) {
  expect_refused({one, two}, "--out: is missing; a report of several runs needs a folder of its own");
  expect_refused({one, one, "--out", out}, "are one run; give it once");
  expect_refused({one, one + "/run.h5", "--out", out}, "are one run; give it once");
  expect_refused({"no-run-1", "no-run-2", "--out", out}, "no-run-1: no such");
  expect_refused({one, two, "--out", out, "--names", "a"}, "1 names for 2 runs");
  expect_refused({folder.path(), "--out", out}, "is not a run folder");
  expect_refused({one, "--out", one}, "is the folder of a run; give a folder of its own");
  expect_refused({one, "--out", out, "--deep-layers", "0"}, "--deep-layers: 0; 1 to 3 are allowed");
  expect_refused({one, "--out", out, "--at", ""}, "--at");
  expect_refused({one, "--out", out, "--seed", "-1"}, "must be a whole number from 0 to 18446744073709551615");
}

TEST_F(ReportCommand, SomeLengthsAStyleAndAPageOfThePaper) {
  const std::string style = folder.path() / "style.json";
  const auto write_style = [&](const char* text) { std::ofstream(style) << text; };
  write_style(R"({"formats": ["svg"], "figures": ["sink-map"]})");
  const ProgramResult result =
      run_gainlens({"report", one, "--lengths", "32", "--style", style, "--out", out, "--paper"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(read_text_file(out + "/report.html"), HasSubstr("Contexts up to 32 tokens"));
  EXPECT_TRUE(fs::exists(out + "/sink-map.svg"));
  EXPECT_FALSE(fs::exists(out + "/sink-map.pdf"));
  EXPECT_FALSE(fs::exists(out + "/context.svg"));
  EXPECT_TRUE(fs::exists(out + "/paper.html"));
  fs::remove_all(out);
  expect_refused({one, "--out", out, "--lengths", "32,48"}, "the run has no length of 48 tokens; it has 32, 64");
  expect_refused({one, "--out", out, "--lengths", ""}, "--lengths");
  expect_refused({one, "--out", out, "--style", style + "x"}, "style.jsonx");
  write_style(R"({"fonts": "Arial"})");
  expect_refused({one, "--out", out, "--style", style}, "'fonts' is not a known key; did you mean 'font'?");
  expect_refused({"--out", out, "--paper", one}, "so give RUN first: gainlens report RUN --paper");
  expect_refused({one, "--out", out, "--paper", "ML-1M"}, "'ML-1M' names a data set, which is for recommender runs");
  expect_refused({"--out", out}, "RUN is missing");
}

TEST_F(ReportCommand, DoesNotWriteIntoAnotherRun) {
  expect_refused({one, "--out", two}, "--out: " + two + " is the folder of a run; choose another folder");
  expect_refused({one, "--out", two + "/shards"}, "--out: " + two + "/shards holds the shards of a run");
  expect_refused({one, "--out", one + "/shards"}, "holds the shards of a run");
  fs::remove(two + "/run.h5");
  expect_refused({one, "--out", two}, "is the folder of a run");
  EXPECT_FALSE(fs::exists(two + "/report.html"));
}

TEST_F(ReportCommand, OverwritesNothingButAReport) {
  for (const std::string name : {"report.html", "tables/context.csv"}) {
    fs::create_directories(out + "/tables");
    write_file(out + "/" + name, "<!DOCTYPE html>\n<title>mine</title>");
    const ProgramResult result = run_gainlens({"report", one, "--out", out});
    EXPECT_EQ(result.exit_code, 2) << name << result.error;
    EXPECT_THAT(result.error, HasSubstr("holds " + name + ", which is not of a report of gainlens"));
    EXPECT_THAT(read_text_file(out + "/" + name), HasSubstr("mine"));
    EXPECT_FALSE(fs::exists(out + "/summary.json")) << name;
    fs::remove_all(out);
  }
  // A folder of other files takes a report. A report of one run has no such table, so it is not overwritten.
  fs::create_directories(out + "/tables");
  write_file(out + "/tables/differences.csv", "mine");
  EXPECT_EQ(run_gainlens({"report", one, "--out", out}).exit_code, 0);
  EXPECT_EQ(read_text_file(out + "/tables/differences.csv"), "mine");
  fs::remove(out + "/summary.json");  // as after a kill
  EXPECT_EQ(run_gainlens({"report", two, "--out", out}).exit_code, 0) << "a report replaces a report";
}

TEST_F(ReportCommand, RemovesWhatAKilledReportLeft) {
  ASSERT_EQ(run_gainlens({"report", one}).exit_code, 0);
  fs::create_directories(one + "/report/.report-AbC123/tables");
  const ScratchFolder alive(one + "/report", ".report-");
  ASSERT_EQ(run_gainlens({"report", one}).exit_code, 0);
  EXPECT_FALSE(fs::exists(one + "/report/.report-AbC123"));
  EXPECT_TRUE(fs::exists(alive.path())) << "its process lives";
}

TEST_F(ReportCommand, ComparesTheLayersThatBothRunsMeasured) {
  const std::string ids = folder.path() / "ids.json";
  const auto compared = [&](std::vector<std::string> options) {
    const std::string part = folder.path() / "part";
    fs::remove_all(part);
    std::vector<std::string> sweep = {
        "sweep",  tiny_checkpoint.string(), "--tokens", ids, "--lengths", "32,64", "--samples", "2", "--out", part,
        "--quiet"};
    sweep.insert(sweep.end(), options.begin(), options.end());
    EXPECT_EQ(run_gainlens(sweep).exit_code, 0);
    const ProgramResult report = run_gainlens({"report", one, part, "--out", out});
    EXPECT_EQ(report.exit_code, 0) << report.error;
    return read_json_file(out + "/summary.json").at("comparisons").at(0);
  };
  const Json layers = compared({"--layers", "0:1"});
  EXPECT_EQ(layers.at("differences").at(0).at("what"), "layers measured");
  EXPECT_EQ(layers.at("layers_compared"), std::vector<int>{0});
  // The same layer of the same text: all that is left is rounding.
  EXPECT_NEAR(layers.at("lengths").at(0).at("n_eff").at("difference").get<double>(), 0, 1e-5);
  EXPECT_THAT(read_text_file(out + "/report.html"), HasSubstr("Only what both runs measured is compared: layer 0;"));
  const Json none = compared({"--statistics", "none"});
  EXPECT_EQ(none.at("differences").at(0).at("what"), "statistics");
  EXPECT_EQ(none.at("differences").at(0).at("second"), "none");
}

TEST_F(ReportCommand, RefusesAChangedShardByItsChecksum) {
  const fs::path shard = *fs::directory_iterator(fs::path(one) / "shards");
  std::ofstream(shard, std::ios::app) << "x";
  expect_refused({one, "--out", out}, shard.filename().string() + ": its sha256 is ");
}

TEST_F(ReportCommand, RefusesARunBeingWritten) {
  const runfile::FolderLock writer(one);
  expect_refused({one, "--out", out}, "is writing this run");
}

}  // namespace report_command_test
}  // namespace gainlens::testing
