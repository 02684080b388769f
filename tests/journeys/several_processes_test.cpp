// Several processes, numbered by a launcher, share one sweep. Their run is the run of one process, whatever happens to
// the processes.
#include "cli/tiny_checkpoint.h"
#include "support/file_bytes.h"
#include "support/program.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gainlens::testing {
namespace several_processes_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SeveralProcesses : public ::testing::Test {
 protected:
  /// The sweep command for a shell. The ids and the run folders lie in its working folder.
  std::string sweep(const std::string& out) const {
    return std::string(QUOTED_PROGRAM " sweep ") + shell_word(tiny_checkpoint) +
           " --tokens ids.json --lengths 64,128 --samples 20 --per-query --threads 1 --out " + out;
  }
  ProgramResult shell(const std::string& line) const { return run_shell(line, folder_.path()); }

  void expect_same_files(const std::string& a, const std::string& b) const {
    const std::string sums = "find . -type f ! -name log.json ! -name lock | sort | xargs sha256sum";
    const auto first = shell("cd " + a + "; " + sums), second = shell("cd " + b + "; " + sums);
    EXPECT_EQ(first.out, second.out);
    EXPECT_THAT(first.out, AllOf(HasSubstr("run.h5"), HasSubstr("request.json"), HasSubstr("manifest.jsonl"),
                                 HasSubstr("T128-S19.h5")));
  }

  TemporaryFolder folder_;
  std::string ids_ = write_ids(folder_.path(), 2560);
};

TEST_F(SeveralProcesses, TwoAreTheRunOfOneByteForByte) {
  ASSERT_EQ(shell(sweep("one")).exit_code, 0);
  const auto torchrun =
      shell("RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 " + sweep("two") + " > quiet 2>&1 & RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 " +
            sweep("two") + "; wait $!; test ! -s quiet; test ! -e two/ranks");
  ASSERT_EQ(torchrun.exit_code, 0) << torchrun.error;
  EXPECT_THAT(torchrun.out, HasSubstr("two/run.h5: 40 of 40 chunks computed"));
  EXPECT_THAT(torchrun.error, HasSubstr("sweep: 100%"));
  expect_same_files("one", "two");

  const auto slurm = shell("SLURM_PROCID=0 SLURM_NTASKS=2 " + sweep("three") + " & SLURM_PROCID=1 SLURM_NTASKS=2 " +
                           sweep("three") + "; wait $!");
  ASSERT_EQ(slurm.exit_code, 0) << slurm.error;
  expect_same_files("one", "three");
}

TEST_F(SeveralProcesses, AKilledRankIsNamedAndTheRunResumedByOneProcess) {
  // Killed after the work is shared out, long before the rank has measured its twenty chunks.
  const auto broken = shell(
      "RANK=1 WORLD_SIZE=2 " + sweep("two") + " & victim=$!; RANK=0 WORLD_SIZE=2 " + sweep("two") +
      " --quiet & leader=$!; until test -e two/ranks/plan.json; do sleep 0.005; done; kill -9 $victim; wait $leader");
  EXPECT_EQ(broken.exit_code, 1);
  EXPECT_THAT(broken.error, AllOf(HasSubstr("gainlens: error: two: rank 1 ended before its shards were there"),
                                  HasSubstr("run the same command again to resume")));
  ASSERT_EQ(shell(sweep("two")).exit_code, 0);
  ASSERT_EQ(shell(sweep("one")).exit_code, 0);
  expect_same_files("one", "two");
}

TEST_F(SeveralProcesses, AKilledRankZeroIsNamedAndTheRunResumedByThree) {
  const auto broken =
      shell("RANK=0 WORLD_SIZE=2 " + sweep("two") + " --quiet & victim=$!; RANK=1 WORLD_SIZE=2 " + sweep("two") +
            " & other=$!; until test -e two/ranks/plan.json; do sleep 0.005; done; kill -9 $victim; wait $other");
  EXPECT_EQ(broken.exit_code, 1);
  EXPECT_THAT(broken.error,
              HasSubstr("rank 0 ended before the run was complete; run the same command again to resume"));
  const auto resumed = shell("for rank in 2 1 0; do RANK=$rank WORLD_SIZE=3 " + sweep("two") +
                             " --quiet & done; wait -n; wait -n; wait -n");
  ASSERT_EQ(resumed.exit_code, 0) << resumed.error;
  ASSERT_EQ(shell(sweep("one")).exit_code, 0);
  expect_same_files("one", "two");
}

TEST_F(SeveralProcesses, WrongVariablesAreOneLineAndNothingIsLeft) {
  for (const auto& [variables, message] :
       {std::pair{"RANK=2 WORLD_SIZE=2", "RANK: '2' in the environment; must be a whole number from 0 to 1"},
        std::pair{"RANK=one WORLD_SIZE=2", "RANK: 'one'"},
        std::pair{"RANK=0", "RANK: is set in the environment and WORLD_SIZE is not"},
        std::pair{"RANK=0 WORLD_SIZE=2 SLURM_PROCID=1 SLURM_NTASKS=2", "unset the wrong pair"}}) {
    const auto result = shell(std::string(variables) + " " + sweep("run"));
    EXPECT_EQ(result.exit_code, 2) << variables;
    EXPECT_THAT(result.error, AllOf(HasSubstr("gainlens: error: "), HasSubstr(message)));
    EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
    EXPECT_FALSE(std::filesystem::exists(folder_.path() / "run"));
  }
  EXPECT_EQ(shell("RANK=0 WORLD_SIZE=1 SLURM_NTASKS=4 " + sweep("run")).exit_code, 0)
      << "it must be one process, as without a launcher";
}

}  // namespace several_processes_test
}  // namespace gainlens::testing
