// Standard streams that are full, closed or unread. Progress and errors may be lost. Lost results must be reported. No
// file may receive the printed text.
#include "cli/tiny_checkpoint.h"
#include "language/language_testing.h"
#include "support/file_bytes.h"
#include "support/program.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace gainlens::testing {
namespace standard_streams_test {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class StandardStreams : public ::testing::Test {
 protected:
  ProgramResult shell(const std::string& line) const { return run_shell(line, folder_.path()); }
  std::string sweep(const std::string& out) const {
    return QUOTED_PROGRAM " sweep " + shell_word(tiny_checkpoint) + " --tokens " + ids_ +
           " --lengths 16,32 --samples 2 --threads 1 --out " + out;
  }
  void expect_same_run(const std::string& out) {
    if (!std::filesystem::exists(folder_.path() / "plain")) {
      ASSERT_EQ(shell(sweep("plain")).exit_code, 0);
    }
    EXPECT_GT(bytes_of(folder_.path() / "plain/run.h5").size(), 1000u);
    EXPECT_TRUE(bytes_of(folder_.path() / "plain/run.h5") == bytes_of(folder_.path() / out / "run.h5")) << out;
    EXPECT_THAT(bytes_of(folder_.path() / out / "lock"), ContainsRegex("^[0-9]+$"))
        << "the file must hold only the process id";
  }

  TemporaryFolder folder_;
  std::string ids_ = write_ids(folder_.path(), 200);
};

TEST_F(StandardStreams, ErrorStreamThatCannotBeWrittenChangesNothing) {
  int number = 0;
  for (const char* redirection : {"2>/dev/full", "2>&-", "0<&- 2>&-", "2> >(true)"}) {
    const std::string out = "run-" + std::to_string(number++);
    const auto result = shell(sweep(out) + " " + redirection);
    EXPECT_EQ(result.exit_code, 0) << redirection;
    EXPECT_THAT(result.out, HasSubstr(out + "/run.h5: 4 of 4 chunks computed")) << redirection;
    expect_same_run(out);
  }
}

TEST_F(StandardStreams, ErrorsKeepTheirExitCode) {
  for (const char* redirection : {"2>/dev/full", "2>&-"}) {
    EXPECT_EQ(shell(std::string(QUOTED_PROGRAM " inspect nowhere ") + redirection).exit_code, 2) << redirection;
    EXPECT_EQ(shell(std::string(QUOTED_PROGRAM " inspect --no-such-option ") + redirection).exit_code, 2)
        << redirection;
  }
}

TEST_F(StandardStreams, TrainingGoesOnWithoutItsProgress) {
  Json recipe = small_recipe();
  recipe["stages"] = {{{"context", 16}, {"steps", 4}}};
  write_text(folder_.path() / "recipe.json", recipe.dump());
  write_text(folder_.path() / "text.txt", made_up_text(300));
  const std::string train =
      QUOTED_PROGRAM " train language-model --config recipe.json --text text.txt --threads 1 --out ";
  ASSERT_EQ(shell(train + "plain").exit_code, 0);
  EXPECT_EQ(shell(train + "full 2>/dev/full").exit_code, 0);
  EXPECT_EQ(shell(train + "closed 2>&-").exit_code, 0);
  for (const char* out : {"full", "closed"}) {
    EXPECT_TRUE(bytes_of(folder_.path() / "plain/model.safetensors") ==
                bytes_of(folder_.path() / out / "model.safetensors"))
        << out;
  }
}

TEST_F(StandardStreams, ResultsThatCannotBeWrittenAreAFailure) {
  const std::string model = shell_word(tiny_checkpoint);
  for (const std::string& command : {std::string("--help"), std::string("--version"), std::string("sweep --help"),
                                     "inspect " + model, "inspect --json " + model, "hooks " + model}) {
    const auto full = shell(QUOTED_PROGRAM " " + command + " >/dev/full");
    EXPECT_EQ(full.exit_code, 1) << command;
    EXPECT_EQ(full.error, "gainlens: error: standard output: cannot be written: No space left on device\n") << command;
    const auto closed = shell(QUOTED_PROGRAM " " + command + " >&-");
    EXPECT_EQ(closed.exit_code, 1) << command;
    EXPECT_EQ(closed.error, "gainlens: error: standard output: cannot be written: Bad file descriptor\n") << command;
  }
}

TEST_F(StandardStreams, ASweepIsWholeBeforeItsResultIsShown) {
  for (const char* redirection : {">/dev/full", ">&-", "0<&- 1>&- 2>&-"}) {
    std::filesystem::remove_all(folder_.path() / "run");
    EXPECT_EQ(shell(sweep("run") + " " + redirection).exit_code, 1) << redirection;
    expect_same_run("run");
  }
}

TEST_F(StandardStreams, AReaderThatHasReadEnoughIsNoError) {
  const std::string inspect = QUOTED_PROGRAM " inspect " + shell_word(tiny_checkpoint);
  const auto first = shell("set +o pipefail; " + inspect + " | head -1");
  EXPECT_EQ(first.exit_code, 0);
  EXPECT_EQ(first.error, "");
  EXPECT_EQ(std::count(first.out.begin(), first.out.end(), '\n'), 1);
  // Nobody reads the output from the beginning.
  const auto nobody = shell("set +o pipefail; { sleep 0.3; " + inspect + " || echo $? > code; } | true; cat code");
  EXPECT_EQ(nobody.out, "141\n") << "as a shell reports SIGPIPE";
  EXPECT_EQ(nobody.error, "");
}

}  // namespace standard_streams_test
}  // namespace gainlens::testing
