// What a person reads who ends a long command by Ctrl-C, and who calls it again.
#include "language/language_testing.h"
#include "support/file_bytes.h"
#include "support/program.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace gainlens::testing {
namespace interruption_words_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class InterruptionWords : public ::testing::Test {
 protected:
  InterruptionWords() {
    Json recipe = small_recipe();
    recipe["stages"] = {{{"context", 16}, {"steps", 4000}}};
    recipe["evaluate_every"] = 10;
    write_text(folder_.path() / "recipe.json", recipe.dump());
    write_text(folder_.path() / "text.txt", made_up_text(600));
  }
  /// Starts the command, sends the signal when the file is there, and waits. With `set -m` a job has the signals of a
  /// command at a terminal.
  ProgramResult interrupted(const std::string& signal, const std::string& file, const std::string& before = "") const {
    return run_shell("set -m; " + before + command() + " 2> error & job=$!; until test -e " + file +
                         "; do sleep 0.02; done; kill -" + signal + " $job; wait $job && code=0 || code=$?; " +
                         "cat error >&2; exit $code",
                     folder_.path());
  }
  static std::string command() {
    return QUOTED_PROGRAM " train language-model --config recipe.json --text text.txt --out model --threads 1";
  }
  TemporaryFolder folder_;
};

TEST_F(InterruptionWords, SayWhatWasKeptAndWhereItContinues) {
  const ProgramResult ended = interrupted("INT", "model/training/state.safetensors");
  EXPECT_EQ(ended.exit_code, 128 + 2) << "the signal ends the program, as ever";
  EXPECT_THAT(ended.error,
              HasSubstr("gainlens: interrupted: model keeps its last saved state; the same command continues there\n"));
  EXPECT_THAT(ended.error, Not(HasSubstr("continues from its stored state")));
  const ProgramResult again = interrupted("TERM", "model/training/history.csv || grep -q continues error");
  EXPECT_EQ(again.exit_code, 128 + 15);
  EXPECT_THAT(again.error,
              AllOf(HasSubstr("gainlens: model: continues from its stored state with step "),
                    HasSubstr(" of 4000 steps were done before\n"), HasSubstr("gainlens: interrupted: model keeps")));
}

/// The first state is saved so late that the signal comes before.
TEST_F(InterruptionWords, BeforeAnythingIsKeptTheySaySo) {
  Json recipe = small_recipe();
  recipe["stages"] = {{{"context", 16}, {"steps", 4000}}};
  recipe["evaluate_every"] = recipe["save_every"] = 4000;
  write_text(folder_.path() / "recipe.json", recipe.dump());
  const ProgramResult ended = interrupted("INT", "model/training/request.json");
  EXPECT_EQ(ended.exit_code, 128 + 2);
  EXPECT_THAT(ended.error, HasSubstr("gainlens: interrupted: nothing was kept; the same command begins again\n"));
}

/// As after `nohup`: a signal that is ignored stays so.
TEST_F(InterruptionWords, AnIgnoredSignalStaysIgnored) {
  Json recipe = small_recipe();
  write_text(folder_.path() / "recipe.json", recipe.dump());
  const ProgramResult ended = run_shell("trap '' INT; " + command() +
                                            " 2> error & job=$!; until test -e model/training/request.json; do sleep "
                                            "0.02; done; kill -INT $job; wait $job; cat error >&2",
                                        folder_.path());
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_THAT(ended.error, Not(HasSubstr("interrupted")));
}

}  // namespace interruption_words_test
}  // namespace gainlens::testing
