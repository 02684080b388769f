#include "reports/report.h"

#include "analyses/synthetic_run.h"
#include "core/error.h"
#include "core/json.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>
#include <string>

namespace gainlens::reports {
namespace {

namespace fs = std::filesystem;
using gainlens::testing::SyntheticRun;
using gainlens::testing::TemporaryFolder;
using gainlens::testing::write_run;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::ThrowsMessage;

SyntheticRun small_run() {
  SyntheticRun run;
  run.lengths = {64, 128};
  run.samples = 2;
  run.layers = 3;
  run.heads = 2;
  run.kv_heads = 1;
  return run;
}

std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files[fs::relative(entry.path(), folder).string()] = read_text_file(entry.path());
  }
  return files;
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++n;
  return n;
}

/// PATH for the life of the object.
class Path {
 public:
  explicit Path(const std::string& value) : before_(std::getenv("PATH")) { ::setenv("PATH", value.c_str(), 1); }
  Path(const Path&) = delete;
  Path& operator=(const Path&) = delete;
  ~Path() { ::setenv("PATH", before_.c_str(), 1); }

 private:
  std::string before_;
};

/// A folder with a program `name` that is a shell script.
void write_program(const fs::path& folder, const std::string& name, const std::string& script) {
  fs::create_directories(folder);
  std::FILE* file = std::fopen((folder / name).c_str(), "w");
  ASSERT_NE(file, nullptr);
  std::fputs(("#!/bin/sh\n" + script + "\n").c_str(), file);
  std::fclose(file);
  fs::permissions(folder / name, fs::perms::owner_all);
}

TEST(Report, EveryFileIsThereAndTheSameTwice) {
  const TemporaryFolder folder;
  const auto reader = write_run(folder.path() / "run", small_run());
  const WrittenReport report = write_report(reader, folder.path() / "one");
  EXPECT_THAT(report.left_out, IsEmpty());
  write_report(reader, folder.path() / "elsewhere" / "two");
  const auto one = contents(folder.path() / "one"), two = contents(folder.path() / "elsewhere" / "two");
  ASSERT_EQ(one.size(), report.files.size());
  for (const auto& [file, bytes] : one) EXPECT_TRUE(two.contains(file) && two.at(file) == bytes) << file;

  for (const char* figure : {"context", "gain-theory", "sink-vs-k", "heatmap-n_eff", "heatmap-kalman_gain", "heatmap-bos_mass",
                             "heatmap-entropy", "value-norms"}) {
    for (const char* format : {"svg", "pdf", "png"})
      EXPECT_TRUE(one.contains(fmt::format("{}.{}", figure, format))) << figure << "." << format;
  }
  for (const char* file : {"summary.json", "report.html", "tables/context.csv", "tables/sink-vs-k.csv", "tables/sinks.csv"})
    EXPECT_TRUE(one.contains(file)) << file;
}

TEST(Report, SummaryHasItsKeysAndEveryNullAReason) {
  const TemporaryFolder folder;
  SyntheticRun run = small_run();
  run.gated = false;
  run.lengths = {64};
  run.samples = 1;
  write_report(write_run(folder.path() / "run", run), folder.path() / "out");
  const Json summary = read_json_file(folder.path() / "out" / "summary.json");
  std::set<std::string> keys;
  for (const auto& [key, value] : summary.items()) keys.insert(key);
  EXPECT_THAT(keys, ::testing::ElementsAre("caveats", "context", "gain_theory", "lengths", "policies", "run", "sink_vs_k", "sinks"));

  std::size_t nulls = 0;
  const auto visit = [&](const auto& self, const Json& node) -> void {
    if (node.is_object()) {
      for (const auto& [key, value] : node.items()) {
        if (value.is_null()) {
          ++nulls;
          EXPECT_TRUE(node.contains(key + "_reason")) << key;
        }
        self(self, value);
      }
    } else if (node.is_array()) {
      for (const Json& value : node) self(self, value);
    }
  };
  visit(visit, summary);
  EXPECT_GT(nulls, 5u);
}

TEST(Report, PageNeedsNothingElse) {
  const TemporaryFolder folder;
  write_report(write_run(folder.path() / "run", small_run()), folder.path() / "out");
  const std::string page = read_text_file(folder.path() / "out" / "report.html");
  EXPECT_EQ(count(page, "<svg "), 8u);
  EXPECT_EQ(count(page, "<script"), 0u);
  EXPECT_EQ(count(page, "<link"), 0u);
  EXPECT_EQ(count(page, "<img"), 0u);
  EXPECT_EQ(count(page, "<image"), 0u);
  EXPECT_THAT(page, HasSubstr("BOS policy: auto: the tokenizer puts token 1 first"));
  EXPECT_THAT(page, Not(HasSubstr(folder.path().string())));
  // the ids of the figures do not meet
  std::set<std::string> ids;
  for (auto at = page.find(" id=\""); at != std::string::npos; at = page.find(" id=\"", at + 1)) {
    const std::string id = page.substr(at + 5, page.find('"', at + 5) - at - 5);
    EXPECT_TRUE(ids.insert(id).second) << id;
  }
}

TEST(Report, TextFromTheRunIsEscaped) {
  const TemporaryFolder folder;
  SyntheticRun run = small_run();
  run.family = "<script>alert(1)</script>";
  run.bos_policy = "always & \"<b>\"";
  write_report(write_run(folder.path() / "run", run), folder.path() / "out");
  const std::string page = read_text_file(folder.path() / "out" / "report.html");
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("<b>\"")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt;"));
}

TEST(Report, OneLayerOneHeadNoGateNoBos) {
  const TemporaryFolder folder;
  SyntheticRun run = small_run();
  run.lengths = {32};
  run.samples = run.layers = run.heads = 1;
  run.gated = false;
  run.bos.reset();
  run.bos_policy = "never";
  const WrittenReport report = write_report(write_run(folder.path() / "run", run), folder.path() / "out");
  ASSERT_EQ(report.left_out.size(), 1u);
  EXPECT_THAT(report.left_out[0], HasSubstr("gain-theory: the run has one length"));
  const std::string page = read_text_file(folder.path() / "out" / "report.html");
  EXPECT_THAT(page, HasSubstr("The model has no attention gate"));
  EXPECT_THAT(page, HasSubstr("key 0 is an ordinary token"));
}

TEST(Report, RunWithoutStatisticsSaysWhyNothingIsDrawn) {
  const TemporaryFolder folder;
  SyntheticRun run = small_run();
  run.statistics = run.gated = false;
  const WrittenReport report = write_report(write_run(folder.path() / "run", run), folder.path() / "out");
  EXPECT_EQ(report.left_out.size(), 8u);
  EXPECT_THAT(read_text_file(folder.path() / "out" / "report.html"), HasSubstr("Left out: the run has no summary/n_eff"));
}

TEST(Report, FiguresOfAnEarlierReportDoNotStay) {
  const TemporaryFolder folder;
  const fs::path out = folder.path() / "out";
  write_report(write_run(folder.path() / "run", small_run()), out);
  ASSERT_TRUE(fs::exists(out / "gain-theory.svg"));
  SyntheticRun one_length = small_run();
  one_length.lengths = {64};
  write_report(write_run(folder.path() / "other", one_length), out);
  EXPECT_FALSE(fs::exists(out / "gain-theory.svg"));
  EXPECT_TRUE(fs::exists(out / "context.svg"));
}

TEST(Report, MissingGnuplotSaysWhatToInstallAndLeavesNothing) {
  const TemporaryFolder folder;
  const auto reader = write_run(folder.path() / "run", small_run());
  const Path path(folder.path().string());
  EXPECT_THAT([&] { write_report(reader, folder.path() / "out"); }, ThrowsMessage<RunFailed>(HasSubstr("install gnuplot")));
  EXPECT_TRUE(fs::is_empty(folder.path() / "out"));
}

TEST(Report, FailingGnuplotIsQuotedAndLeavesTheOldReport) {
  const TemporaryFolder folder;
  const auto reader = write_run(folder.path() / "run", small_run());
  fs::create_directories(folder.path() / "out");
  std::fclose(std::fopen((folder.path() / "out" / "context.svg").c_str(), "w"));
  write_program(folder.path() / "bin", "gnuplot", "echo no such font >&2\nexit 3");
  const Path path((folder.path() / "bin").string() + ":" + std::getenv("PATH"));
  EXPECT_THAT([&] { write_report(reader, folder.path() / "out"); }, ThrowsMessage<RunFailed>(HasSubstr("exit code 3: no such font")));
  EXPECT_EQ(contents(folder.path() / "out").size(), 1u);
}

}  // namespace
}  // namespace gainlens::reports
