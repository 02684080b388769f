// What the commands for every kind of run do with a path: by its kind, however it is written.
#include "cli/tiny_checkpoint.h"
#include "runfile/experiment_run.h"
#include "runfile/made_attention_run.h"
#include "runfile/made_experiment_run.h"
#include "runfile/made_recommend_run.h"
#include "runfile/made_run.h"
#include "runfile/recommend_run.h"
#include "runfile/run_folder.h"
#include "runfile/run_proof.h"
#include "support/file_bytes.h"
#include "support/program.h"
#include "support/refused_call.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace gainlens::testing {
namespace run_kinds_test {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

const std::vector<std::string> commands_for_runs = {"inspect", "check", "report", "compare"};

class RunKindCommands : public ::testing::Test {
 protected:
  RunKindCommands() { fs::create_directories(run_); }

  TemporaryFolder folder_;
  fs::path run_ = folder_.path() / "run";
};

TEST_F(RunKindCommands, EveryPathToARunGivesTheSameAnswer) {
  const std::vector<std::function<void()>> makers = {
      [&] { runfile::write_experiment_run(run_ / "run.h5", made_experiment_run()); },
      [&] { runfile::write_attention_run(run_ / "run.h5", made_attention_run()); },
      [&] { make_run(run_, made_request()); }};
  fs::create_directory_symlink(run_, folder_.path() / "link");
  for (const auto& make : makers) {
    fs::remove_all(run_);
    fs::create_directories(run_);
    make();
    const ProgramResult expected = run_gainlens({"inspect", run_});
    EXPECT_EQ(expected.exit_code, 0) << expected.error;
    for (const fs::path& path : {run_ / "", folder_.path() / "link", folder_.path() / "link" / ""})
      EXPECT_EQ(run_gainlens({"inspect", path}).out, expected.out) << path;
    const ProgramResult of_file = run_gainlens({"inspect", run_ / "run.h5"});
    EXPECT_EQ(of_file.exit_code, 0) << of_file.error;
    const auto first_line = [](const std::string& text) { return text.substr(0, text.find('\n')); };
    EXPECT_EQ(first_line(of_file.out), first_line(expected.out));
  }
}

TEST_F(RunKindCommands, OptionsOfOtherThingsAreRefused) {
  const std::string run = run_ / "run.h5",
                    data = write_file(folder_.path() / "data.txt", "1 1 2 3\n2 2 3 4\n3 1 3 4\n"),
                    model = tiny_checkpoint, nothing = folder_.path() / "nothing";
  runfile::write_experiment_run(run, made_experiment_run());
  fs::create_directories(nothing);
  const std::vector<std::pair<std::vector<std::string>, std::string>> calls = {
      {{"inspect", model, "--split", "temporal:0.5"}, "--split: is for data sets; this is a checkpoint"},
      {{"inspect", nothing, "--no-header", "--user-column", "1", "--item-column", "2", "--time-column", "3"},
       "--user-column: is for data sets; this is a checkpoint"},
      {{"inspect", run, "--quotes", "none"}, "--quotes: is for data sets; this is a run"},
      {{"inspect", run_, "--duplicates", "first"}, "--duplicates: is for data sets; this is a run"},
      {{"inspect", run, "--length", "8k"}, "--length: is for the checkpoint of a decoder; this is a run"},
      {{"inspect", data, "--length", "8k"}, "--length: is for the checkpoint of a decoder; this is a data set"},
      {{"inspect", data, "--dtype", "bf16"}, "--dtype: is for the checkpoint of a decoder; this is a data set"},
      {{"inspect", run, "--ignore-config-key", "x"},
       "--ignore-config-key: is for the checkpoint of a decoder; this is a run"},
      {{"report", run, "--theory-margin", "0.5"},
       "--theory-margin: is for sweeps, and " + run + " is the run of an experiment; leave it out"},
      {{"compare", run, "--validation"},
       "--validation: is for recommender runs, and " + run + " is the run of an experiment; leave it out"}};
  for (const auto& [call, reason] : calls) {
    const ProgramResult result = run_gainlens(call);
    expect_refused(result, reason);
  }
}

TEST_F(RunKindCommands, TwoKindsAtOnceAreRefusedByEveryCommand) {
  write_file(run_ / "request.json", R"({"statistics_version": 1})");
  runfile::write_recommend_run(run_ / "run.h5", made_recommend_run());
  for (const std::string& command : commands_for_runs) {
    for (const fs::path& path : {run_, run_ / "run.h5"})
      expect_refusal_line(run_gainlens({command, path}),
                          path.string() +
                              ": is two kinds of run at once: by its request.json a sweep, and by its run.h5 a "
                              "recommender run; give each run a folder of its own");
  }
}

TEST_F(RunKindCommands, AKindOfANewerVersionIsRefusedByEveryCommand) {
  write_file(run_ / "request.json", R"({"format": "gainlens-of-tomorrow"})");
  for (const std::string& command : commands_for_runs)
    expect_refusal_line(run_gainlens({command, run_}),
                        "its request.json has the format 'gainlens-of-tomorrow', which this gainlens does not know");
}

TEST_F(RunKindCommands, NoKindIsRefusedByEveryCommand) {
  write_file(run_ / "notes.txt", "mine");
  for (const std::string& command : commands_for_runs) EXPECT_EQ(run_gainlens({command, run_}).exit_code, 2) << command;
}

TEST_F(RunKindCommands, AStoppedSweepIsShownAsFarAsItGoes) {
  const std::string run = run_, ids = write_ids(folder_.path(), 160), manifest = run + "/manifest.jsonl";
  const std::vector<std::string> sweep = {
      "sweep", tiny_checkpoint, "--tokens", ids, "--lengths", "32,64", "--samples", "2", "--out", run, "--quiet"};
  ASSERT_EQ(run_gainlens(sweep).exit_code, 0);
  const std::string whole = bytes_of(run + "/run.h5"), lines = bytes_of(manifest);
  for (const char* file : {"/run.h5", "/log.json", "/shards/T64-S1.h5"}) fs::remove(run + file);
  write_file(manifest, lines.substr(0, lines.rfind('{')));
  const std::string stopped = "The sweep was stopped: 3 of 4 chunks are there. Repeat its gainlens sweep command";
  const ProgramResult inspected = run_gainlens({"inspect", run});
  EXPECT_EQ(inspected.exit_code, 0) << inspected.error;
  EXPECT_THAT(inspected.out, AllOf(HasSubstr("3 of 4 complete"), HasSubstr("its 3 shards are as they were written"),
                                   HasSubstr(stopped)));
  const ProgramResult reported = run_gainlens({"report", run, "--out", folder_.path() / "page"});
  EXPECT_EQ(reported.exit_code, 0) << reported.error;
  EXPECT_THAT(reported.error, HasSubstr(stopped));
  EXPECT_THAT(bytes_of(folder_.path() / "page" / "report.html"), HasSubstr(stopped));
  EXPECT_THAT(run_gainlens({"check", run}).out, AllOf(HasSubstr("1 of 4 chunks are missing"),
                                                      HasSubstr("its 3 shards are as written, and run.h5 is not")));
  EXPECT_EQ(run_gainlens(sweep).exit_code, 0);
  EXPECT_EQ(bytes_of(run + "/run.h5"), whole);
  EXPECT_EQ(bytes_of(manifest), lines);
  for (const char* file : {"/run.h5", "/manifest.jsonl"}) fs::remove(run + file);
  fs::remove_all(run + "/shards");
  expect_refusal_line(run_gainlens({"report", run}), "the sweep has not finished (0 of 4 chunks are done); repeat its");
}

TEST_F(RunKindCommands, AnExperimentWithoutAFinishedTrainingSaysHowToGoOn) {
  write_file(run_ / "request.json", made_experiment_run().request.dump());
  write_file(run_ / "trainings.json", R"({"plain": [0, 1], "bft/wide": [0]})");
  const ProgramResult inspected = run_gainlens({"inspect", run_});
  expect_refusal_line(inspected, "no training is finished; repeat its gainlens train command, which continues");
  EXPECT_THAT(inspected.out, AllOf(HasSubstr("0 of 3 trainings; run.h5 is written when"), HasSubstr("bft/wide")));
  expect_refusal_line(run_gainlens({"report", run_}), "the training has not finished; repeat its `gainlens train`");
  for (const char* text : {"[]", R"({"plain": 1})", R"({"plain": [-1]})", R"({"../plain": [1]})", R"({"": [1]})"}) {
    write_file(run_ / "trainings.json", text);
    expect_refusal_line(run_gainlens({"inspect", run_}), "trainings.json: ");
  }
}

TEST_F(RunKindCommands, APipeInThePlaceOfARunIsRefused) {
  ASSERT_EQ(::mkfifo((run_ / "run.h5").c_str(), 0600), 0);
  for (const std::string& command : commands_for_runs) {
    for (const fs::path& path : {run_, run_ / "run.h5"})
      expect_refusal_line(run_gainlens({command, path}), "not a regular file");
  }
}

}  // namespace run_kinds_test
}  // namespace gainlens::testing
