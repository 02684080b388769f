// Two processes fine-tune a language model. They survive the death of one of them, and share whole trainings too.
#include "core/json.h"
#include "support/file_bytes.h"
#include "support/program.h"
#include "support/shared_data.h"
#include "support/text_file.h"
#include "support/two_processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace gainlens::testing {
namespace finetune_processes_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

class FinetuneProcesses : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string lines;
    for (int i = 0; i < 60; ++i) {
      const std::string color = i % 3 == 0 ? "red" : i % 3 == 1 ? "green" : "blue";
      lines += Json{{"prompt", "Number " + std::to_string(i) + " is " + color + ". What is it?"}, {"answers", {color}}}
                   .dump() +
               "\n";
    }
    write_file(folder_.path() / "colors.jsonl", lines);
    if (shell("RANK=0 WORLD_SIZE=2 " + train("none")).error.find("gloo") != std::string::npos)
      GTEST_SKIP() << "built without gloo";
  }

  ProgramResult shell(const std::string& line) const { return run_shell(line, folder_.path()); }
  ProgramResult two(const std::string& command, const std::string& after) const {
    return shell(as_two_processes(command, after));
  }
  /// The command for a shell in the test's folder.
  static std::string train(const std::string& out, const std::string& more = "") {
    return QUOTED_PROGRAM " train finetune '" GAINLENS_SOURCE_DIR
                          "/data/demo/gated' --task colors.jsonl --train-rows 12 --validation-rows 3 --test-rows 20 "
                          "--learning-rate 1e-3 --max-new 3 --threads 1 --quiet --out " +
           out + " " + more;
  }
  bool equal(const std::string& one, const std::string& other, const char* file) const {
    const std::string bytes = bytes_of(folder_.path() / one / file);
    return !bytes.empty() && bytes == bytes_of(folder_.path() / other / file);
  }

  TemporaryFolder folder_;
};

TEST_F(FinetuneProcesses, AKilledProcessEndsTheOtherAndTheTrainingEndsWithTheSameBytes) {
  const std::string more = "--arm bft --epochs 3";
  const ProgramResult whole = two(train("whole", more), wait_for_both);
  ASSERT_EQ(whole.exit_code, 0) << bytes_of(folder_.path() / "leader.err");
  EXPECT_THAT(whole.out, HasSubstr("bft/np0"));
  EXPECT_EQ(bytes_of(folder_.path() / "other.out") + bytes_of(folder_.path() / "other.err"), "");
  for (const auto& [victim, survivor] : {std::pair{"other", "leader"}, std::pair{"leader", "other"}}) {
    const ProgramResult killed = two(train("broken", more),
                                     "until test -e "
                                     "broken/bft/np0/seed-0/training/state.safetensors -o -e "
                                     "broken/bft/np0/seed-0/result.safetensors; do sleep 0.002; done; kill -9 $" +
                                         std::string(victim) + "; wait $" + survivor);
    EXPECT_EQ(killed.exit_code, 1);
    const std::string error = bytes_of(folder_.path() / (std::string(survivor) + ".err"));
    EXPECT_THAT(error, AllOf(HasSubstr("gainlens: error: process "), HasSubstr("another process has ended")));
    EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 1) << error;
    ASSERT_EQ(two(train("broken", more), wait_for_both).exit_code, 0) << bytes_of(folder_.path() / "leader.err");
    for (const char* file : {"run.h5", "bft/np0/seed-0/model.safetensors", "bft/np0/seed-0/predictions.jsonl",
                             "bft/np0/seed-0/training/history.csv"})
      EXPECT_TRUE(equal("broken", "whole", file)) << file;
    // Nothing goes on from the state of a training that is done.
    EXPECT_FALSE(std::filesystem::exists(folder_.path() / "broken/bft/np0/seed-0/training/state.safetensors"));
    std::filesystem::remove_all(folder_.path() / "broken");
  }
  // One process does not continue the run of two.
  const ProgramResult alone = shell(train("whole", more));
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_THAT(alone.error, HasSubstr("/processes is 2 in the stored request"));
}

TEST_F(FinetuneProcesses, SharedTrainingsAreTheRunOfOneByteForByte) {
  const std::string more = "--seeds 3 --epochs 1 --spread seeds";
  ASSERT_EQ(shell(train("one", more)).exit_code, 0);
  ASSERT_EQ(two(train("two", more), wait_for_both).exit_code, 0) << bytes_of(folder_.path() / "leader.err");
  EXPECT_TRUE(equal("one", "two", "run.h5"));
  const ProgramResult wrong = shell(train("two", "--spread seed"));
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.error, HasSubstr("must be batches or seeds"));
}

}  // namespace finetune_processes_test
}  // namespace gainlens::testing
