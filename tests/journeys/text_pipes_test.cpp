// Texts that can be read only once: standard input, and the shell's <(...).
#include "support/file_bytes.h"
#include "support/program.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gainlens::testing {
namespace text_pipes_test {

using ::testing::HasSubstr;

const std::string demo = GAINLENS_SOURCE_DIR "/data/demo/";

class TextPipes : public ::testing::Test {
 protected:
  ProgramResult shell(const std::string& line) const { return run_shell(line, folder_.path()); }
  std::string sweep(const std::string& text, const std::string& out) const {
    return QUOTED_PROGRAM " sweep " + shell_word(demo + "plain") +
           " --lengths 16,64 --samples 2 --threads 1 --quiet --text " + text + " --out " + out;
  }
  TemporaryFolder folder_;
};

TEST_F(TextPipes, GiveTheRunOfTheFile) {
  const std::string text = shell_word(demo + "text.txt");
  ASSERT_EQ(shell(sweep(text, "file")).exit_code, 0);
  const std::string expected = bytes_of(folder_.path() / "file/run.h5");
  ASSERT_GT(expected.size(), 1000u);
  const std::vector<std::string> lines = {sweep("-", "a") + " < " + text, "gzip -c " + text + " | " + sweep("-", "b"),
                                          "cat " + text + " | " + sweep("/dev/stdin", "c"),
                                          sweep("<(gzip -c " + text + ")", "d")};
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const ProgramResult result = shell(lines[i]);
    EXPECT_EQ(result.exit_code, 0) << lines[i] << ": " << result.error;
    EXPECT_TRUE(bytes_of(folder_.path() / std::string(1, static_cast<char>('a' + i)) / "run.h5") == expected)
        << lines[i];
  }
  // The same text, piped again, finds the run finished.
  const ProgramResult again = shell("cat " + text + " | " + sweep("-", "b"));
  EXPECT_EQ(again.exit_code, 0) << again.error;
  EXPECT_THAT(again.out, HasSubstr("complete, nothing to do (4 chunks)"));
}

TEST_F(TextPipes, WithoutATextAreRefused) {
  const auto expect_refused = [&](const std::string& line, const std::string& message) {
    const ProgramResult result = shell(line);
    EXPECT_EQ(result.exit_code, 2) << line;
    EXPECT_THAT(result.error, HasSubstr(message)) << line;
  };
  expect_refused("true | " + sweep("-", "a"), "standard input: empty; give a text");
  expect_refused(sweep("-", "a") + " < /dev/null", "standard input: neither a pipe nor a file");
  expect_refused(sweep("-", "a") + " <&-", "standard input: neither a pipe nor a file");
  expect_refused("printf 'a\\377' | " + sweep("-", "a"), "standard input: not UTF-8 at byte 1");
}

TEST_F(TextPipes, TheLineEndOfEchoIsTold) {
  const std::string told = "the text ends in a line end, which is a part of its ";
  const std::string model = shell_word(demo + "plain"), site = " --hooks blocks.0.hook_resid_post --out x.safetensors";
  EXPECT_THAT(shell("echo The river | " QUOTED_PROGRAM " capture " + model + " --text -" + site).error,
              HasSubstr(told));
  EXPECT_THAT(shell("echo The river | " QUOTED_PROGRAM " evaluate language-model " + model + " --text -").error,
              HasSubstr(told));
  EXPECT_EQ(shell("printf 'The river' | " QUOTED_PROGRAM " capture " + model +
                  " --text - --quiet --hooks "
                  "blocks.0.hook_resid_post --out y.safetensors")
                .error,
            "");
}

}  // namespace text_pipes_test
}  // namespace gainlens::testing
