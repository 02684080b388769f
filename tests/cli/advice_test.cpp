#include "cli/tiny_checkpoint.h"
#include "support/file_bytes.h"
#include "support/program.h"
#include "support/refused_call.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>
#include <string>
#include <vector>

// What a message advises must be there: each option that it names is one of the command that printed it.

namespace gainlens::testing {
namespace advice_test {

using ::testing::HasSubstr;
using ::testing::Not;

using Words = std::vector<std::string>;

const std::string gated = GAINLENS_SOURCE_DIR "/tests/golden/models/qwen3-gate-headwise";

Words joined(Words first, const Words& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

/// "--lengths" and the like.
std::set<std::string> options_in(const std::string& text) {
  static const std::regex option("--[a-z][a-z-]*[a-z]");
  std::set<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), option), end; at != end; ++at) found.insert(at->str());
  return found;
}

/// The options that the help of a command lists.
std::set<std::string> options_of(const Words& command) {
  const ProgramResult help = run_gainlens(joined(command, {"--help"}));
  EXPECT_EQ(help.exit_code, 0);
  static const std::regex listed("(?:^|\n)  +(?:-[a-z],)?(--[a-z][a-z-]*[a-z])");
  std::set<std::string> found;
  for (std::sregex_iterator at(help.out.begin(), help.out.end(), listed), end; at != end; ++at)
    found.insert((*at)[1].str());
  return found;
}

class Advice : public ::testing::Test {
 protected:
  std::string ids(const std::string& name, int step, int count) const {
    std::string text = "[";
    for (int i = 0; i < count; ++i) text += (i == 0 ? "" : ",") + std::to_string(3 + (i * step + i * i / 7) % 58);
    return write_file(folder_.path() / name, text + "]");
  }
  /// Expects that the command refuses, and names only options that it has.
  /// @returns  the message
  std::string refusal(const Words& command, const Words& more) const {
    const ProgramResult result = run_gainlens(joined(command, joined(more, {"--quiet"})));
    expect_refused(result, "");
    const std::set<std::string> has = options_of(command);
    EXPECT_THAT(has, ::testing::Contains("--text"));
    for (const std::string& named : options_in(result.error))
      EXPECT_TRUE(has.contains(named)) << command.front() << " has no " << named << ": " << result.error;
    return result.error;
  }
  std::string out(const char* name) const { return folder_.path() / name; }

  TemporaryFolder folder_;
  std::string short_ = ids("short.json", 13, 100);
  std::string other_ = ids("other.json", 29, 400);
  std::string one_ = write_file(folder_.path() / "one.json", "[3]");
};

TEST_F(Advice, OfATextThatIsTooShort) {
  const std::string model = tiny_checkpoint;
  EXPECT_THAT(refusal({"sweep"}, {model, "--tokens", short_, "--lengths", "64", "--samples", "2", "--out", out("a")}),
              HasSubstr("; give a longer text or --samples of at most 1 or --lengths of at most 50"));
  EXPECT_THAT(refusal({"sweep"}, {model, "--tokens", short_, "--lengths", "8", "--samples", "40", "--out", out("a")}),
              HasSubstr("; give a longer text or --samples of at most 12\n"));
  EXPECT_THAT(refusal({"intervene"}, {model, "--tokens", short_, "--lengths", "64", "--samples", "2", "--each-head"}),
              HasSubstr("; give a longer text or --samples of at most 1 or --lengths of at most 50"));
  // resample takes values from a second document.
  EXPECT_THAT(refusal({"intervene"}, {model, "--tokens", short_, "--lengths", "64", "--samples", "2", "--each-head",
                                      "--modes", "resample"}),
              HasSubstr("; give a longer text or --lengths of at most 50"));
  EXPECT_THAT(refusal({"capture"}, {model, "--tokens", short_, "--length", "120", "--hooks", "*", "--out", out("b")}),
              HasSubstr("--length 120 needs 120"));
  refusal({"evaluate", "language-model"}, {model, "--tokens", one_});
}

TEST_F(Advice, OfATextThatIsTooShortForInactiveHeads) {
  const std::string model = tiny_checkpoint;
  ASSERT_EQ(run_gainlens({"sweep", model, "--tokens", other_, "--lengths", "32", "--samples", "1", "--out", out("run"),
                          "--quiet"})
                .exit_code,
            0);
  const Words words = {model, "--run", out("run"), "--samples", "2", "--tokens", short_, "--lengths"};
  EXPECT_THAT(refusal({"inactive-heads"}, joined(words, {"64"})), HasSubstr("--lengths of at most 50"));
  EXPECT_THAT(refusal({"inactive-heads"}, joined(words, {"256"})),
              HasSubstr("use shorter contexts, or --allow-extrapolation"));
}

TEST_F(Advice, OfATextThatIsTooShortForGateArms) {
  const auto refused = [&](const std::string& text, const std::string& calibration, const Words& more) {
    return refusal({"gate-arms"}, joined({gated, "--tokens", text, "--calibration", calibration, "--trained-length",
                                          "16", "--targets", "4"},
                                         more));
  };
  const Words few = {"--few-documents", "--samples", "3", "--contexts"};
  EXPECT_THAT(refused(short_, other_, joined(few, {"16,64"})),
              HasSubstr("; give a longer text or --samples of at most 1 or --contexts of at most 33\n"));
  EXPECT_THAT(refused(other_, short_, joined(few, {"16,64"})),
              HasSubstr("; give a longer text or --calibration-samples of at most 1 or --contexts of at most 33\n"));
  // Contexts hold the trained length.
  EXPECT_THAT(refused(short_, other_, {"--contexts", "16"}),
              HasSubstr("; give a longer text or --samples of at most 6 with --few-documents\n"));
  // What is advised works.
  const ProgramResult advised = run_gainlens({"gate-arms", gated, "--tokens", short_, "--calibration", other_,
                                              "--trained-length", "16", "--targets", "4", "--contexts", "16",
                                              "--samples", "6", "--few-documents", "--arms", "constant", "--quiet"});
  EXPECT_EQ(advised.exit_code, 0) << advised.error;
}

TEST_F(Advice, OfALengthBeyondTheModel) {
  const std::string model = tiny_checkpoint;
  for (const std::string& error :
       {refusal({"sweep"}, {model, "--tokens", other_, "--lengths", "256", "--out", out("a")}),
        refusal({"intervene"}, {model, "--tokens", other_, "--lengths", "256", "--each-head"}),
        refusal({"capture"}, {model, "--tokens", other_, "--length", "256", "--hooks", "*", "--out", out("b")})})
    EXPECT_THAT(error, HasSubstr("--allow-extrapolation"));
  EXPECT_THAT(refusal({"evaluate", "language-model"}, {model, "--tokens", other_, "--length", "256"}),
              Not(HasSubstr("--allow-extrapolation")));
}

}  // namespace advice_test
}  // namespace gainlens::testing
