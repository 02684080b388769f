// Several processes train recommenders. Their run is that of one process, and survives the death of one of them.
#include "runfile/recommend_run.h"
#include "support/file_bytes.h"
#include "support/free_port.h"
#include "support/program.h"
#include "support/shared_data.h"
#include "support/text_file.h"
#include "support/two_processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace gainlens::testing {
namespace recommend_processes_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

class RecommendProcesses : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string ring;
    for (int user = 0; user < 200; ++user) {
      ring += std::to_string(user);
      for (int i = 0; i < 4 + user % 9; ++i) ring += " " + std::to_string((user * 5 + i) % 97 + 1);
      ring += "\n";
    }
    write_file(folder_.path() / "ring.txt", ring);
    if (shell("RANK=0 WORLD_SIZE=2 " + train("none")).error.find("gloo") != std::string::npos)
      GTEST_SKIP() << "built without gloo";
  }

  ProgramResult shell(const std::string& line) const { return run_shell(line, folder_.path()); }

  /// The command for a shell in the test's folder.
  static std::string train(const std::string& out, const std::string& more = "") {
    return QUOTED_PROGRAM " train recommend --data ring.txt --out " + out +
           " --epochs 8 --width 16 --dropout 0.2 --threads 1 --quiet " +
           (more.find("--batch") == std::string::npos ? "--batch 32 " : "") + more;
  }

  ProgramResult two(const std::string& command, const std::string& after) const {
    return shell(as_two_processes(command, after));
  }

  TemporaryFolder folder_;
};

TEST_F(RecommendProcesses, SharedBatchesGiveTheLossesOfOneProcess) {
  ASSERT_EQ(shell(train("one")).exit_code, 0);
  const ProgramResult both = two(train("two"), wait_for_both);
  ASSERT_EQ(both.exit_code, 0) << both.error;
  EXPECT_THAT(both.out, HasSubstr("plain, mean"));
  EXPECT_EQ(bytes_of(folder_.path() / "other.out") + bytes_of(folder_.path() / "other.err"), "");
  const runfile::RecommendRun one = runfile::read_recommend_run(folder_.path() / "one");
  const runfile::RecommendRun found = runfile::read_recommend_run(folder_.path() / "two");
  const auto& expected = one.result(0, 0)->curve.at("training_loss");
  const auto& losses = found.result(0, 0)->curve.at("training_loss");
  ASSERT_EQ(losses.size(), 8u);
  ASSERT_EQ(expected.size(), 8u);
  for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], expected[i], 1e-5 * expected[i]) << i;
  EXPECT_EQ(found.request.at("processes"), 2);
  // One process does not continue the run of two: the last bits would be others.
  const ProgramResult alone = shell(train("two"));
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_THAT(alone.error, HasSubstr("processes is 2 in the stored request"));
}

TEST_F(RecommendProcesses, AKilledProcessEndsTheOtherAndTheRunResumes) {
  ASSERT_EQ(two(train("whole", "--save-every 1"), wait_for_both).exit_code, 0);
  for (const auto& [victim, survivor] : {std::pair{"other", "leader"}, std::pair{"leader", "other"}}) {
    const std::string saved = "broken/plain/seed-0/training/state.safetensors";
    const ProgramResult killed =
        two(train("broken", "--save-every 1"), "until test -e " + saved + "; do sleep 0.002; done; kill -9 $" +
                                                   std::string(victim) + "; wait $" + survivor);
    // The training may have ended before the signal came.
    if (killed.exit_code != 0) {
      EXPECT_EQ(killed.exit_code, 1);
      const std::string error = bytes_of(folder_.path() / (std::string(survivor) + ".err"));
      EXPECT_THAT(error, AllOf(HasSubstr("gainlens: error: process "), HasSubstr("another process has ended")));
      EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 1) << error;
    }
    const ProgramResult resumed = two(train("broken", "--save-every 1"), wait_for_both);
    ASSERT_EQ(resumed.exit_code, 0) << resumed.error;
    for (const char* file : {"model.safetensors", "result.safetensors"}) {
      const std::filesystem::path name = std::filesystem::path("plain/seed-0") / file;
      EXPECT_TRUE(bytes_of(folder_.path() / "broken" / name) == bytes_of(folder_.path() / "whole" / name)) << file;
    }
    std::filesystem::remove_all(folder_.path() / "broken");
  }
}

TEST_F(RecommendProcesses, SharedSeedsAreTheRunOfOneByteForByte) {
  const std::string more = "--seeds 3 --arm plain,popularity --spread seeds";
  ASSERT_EQ(shell(train("one", more)).exit_code, 0);
  const ProgramResult both = two(train("two", more), wait_for_both);
  ASSERT_EQ(both.exit_code, 0) << both.error;
  EXPECT_EQ(bytes_of(folder_.path() / "one/run.h5"), bytes_of(folder_.path() / "two/run.h5"));
  EXPECT_GT(bytes_of(folder_.path() / "two/run.h5").size(), 1000u);
}

TEST_F(RecommendProcesses, WrongRequestsAreOneLine) {
  const ProgramResult missing = shell("RANK=0 WORLD_SIZE=2 " + train("none"));
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.error, HasSubstr("MASTER_ADDR: not set"));
  const ProgramResult many = shell("RANK=0 WORLD_SIZE=2 " + train("none", "--seeds-at-once 2"));
  EXPECT_EQ(many.exit_code, 2);
  EXPECT_THAT(many.error, HasSubstr("use --spread seeds"));
  EXPECT_EQ(shell(train("none", "--spread seed")).exit_code, 2);
  const ProgramResult differs =
      shell("export MASTER_ADDR=127.0.0.1 MASTER_PORT=" + free_port() + " WORLD_SIZE=2; RANK=1 " +
            train("both", "--batch 16") + " > other.out 2> other.err & other=$!; RANK=0 " + train("both") +
            " || true; wait $other || cat other.err");
  EXPECT_THAT(differs.out, HasSubstr("/training/batch is 32 in the stored request and 16"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "both"));
}

}  // namespace recommend_processes_test
}  // namespace gainlens::testing
