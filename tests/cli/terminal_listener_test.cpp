#include "cli/terminal_listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

namespace gainlens::cli {
namespace terminal_listener_test {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

auto lines_in(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

TEST(TerminalProgress, LinesShowTheFirstAndTheLastOfQuickWork) {
  CaptureStderr();
  {
    TerminalProgress progress({"sweep", 100, "tokens"}, TerminalProgress::Style::lines);
    for (int step = 0; step < 10; ++step) progress.advanced(10, 512, "chunk " + std::to_string(step));
  }
  const std::string shown = GetCapturedStderr();
  EXPECT_EQ(lines_in(shown), 2) << shown;  // the first and the last; the eight between come within two seconds
  EXPECT_THAT(shown, StartsWith("sweep:  10%  chunk 0  "));
  EXPECT_THAT(shown, HasSubstr("left\nsweep: 100%  chunk 9  "));
  EXPECT_THAT(shown, EndsWith("done in 0.0 s\n"));
  EXPECT_THAT(shown, Not(HasSubstr("\r")));
}

TEST(TerminalProgress, LineNamesShareLabelRateAndTimeLeft) {
  CaptureStderr();
  TerminalProgress({"sweep", 4, "tokens"}, TerminalProgress::Style::lines).advanced(1, 512, "1k, sample 3");
  EXPECT_THAT(GetCapturedStderr(), MatchesRegex("sweep:  25%  1k, sample 3  [0-9]+ tokens/s  [0-9.]+ s left\n"));
}

TEST(TerminalProgress, ShareFollowsCostNotSteps) {
  CaptureStderr();
  TerminalProgress({"sweep", 100, "tokens"}, TerminalProgress::Style::lines).advanced(64, 1, "long");
  EXPECT_THAT(GetCapturedStderr(), HasSubstr(" 64%"));
}

TEST(TerminalProgress, SumsThatRoundStillEnd) {
  CaptureStderr();
  {
    TerminalProgress progress({"sweep", 1.0, "tokens"}, TerminalProgress::Style::lines);
    for (int step = 0; step < 10; ++step) progress.advanced(0.1, 1, "");  // 0.1 added ten times is 0.9999999999999999
  }
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("done in"));
}

TEST(TerminalProgress, TerminalRedrawsOneLineAndEndsIt) {
  CaptureStderr();
  {
    TerminalProgress progress({"sweep", 2, "tokens"}, TerminalProgress::Style::terminal);
    progress.advanced(1, 512, "a");
    progress.advanced(1, 512, "b");
  }
  const std::string shown = GetCapturedStderr();
  EXPECT_THAT(shown, StartsWith("\r\033[Ksweep [############------------]  50%  a"));
  EXPECT_THAT(shown, HasSubstr("\r\033[Ksweep [########################] 100%  b"));
  EXPECT_EQ(lines_in(shown), 1);
  EXPECT_THAT(shown, EndsWith("\n"));
}

TEST(TerminalListener, ANoticeIsALineThatNamesTheProgram) {
  CaptureStderr();
  TerminalListener terminal;
  {
    const ScopedListener told(terminal);
    tell_note("{} of {}", 1, "2\x1b[2J");
    tell_warning("too {}", "small");
  }
  EXPECT_EQ(GetCapturedStderr(), "gainlens: 1 of 2\\x1b[2J\ngainlens: warning: too small\n");
}

TEST(TerminalProgress, SkippedWorkLeavesShareAndTimeLeft) {
  CaptureStderr();
  {
    TerminalProgress progress({"train", 120, "epochs"}, TerminalProgress::Style::lines);
    progress.skipped(80, "two of three were done before");  // first line: nothing of 40 is done
    for (int epoch = 0; epoch < 10; ++epoch) progress.advanced(1, 1, "epoch");
    progress.skipped(30, "ended early");
  }
  const std::string shown = GetCapturedStderr();
  EXPECT_THAT(shown, StartsWith("train:   0%  two of three were done before  begins\n"));  // without a rate
  EXPECT_THAT(shown, MatchesRegex(".*train: 100%  ended early  [0-9]+ epochs/s  done in [0-9.]+ s\n"));
}

TEST(TerminalProgress, SlowWorkHasARate) {
  CaptureStderr();
  {
    TerminalProgress progress({"train", 2, "epochs"}, TerminalProgress::Style::lines);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    progress.advanced(1, 0.001, "slow");  // at most 3 in a minute
    progress.advanced(1, 0, "and nothing");
  }
  EXPECT_THAT(GetCapturedStderr(),
              AllOf(HasSubstr(" epochs/"), Not(HasSubstr(" epochs/s")), Not(HasSubstr(" 0 epochs"))));
}

TEST(TerminalProgress, WorkWithoutAnAmountHasNoRate) {
  CaptureStderr();
  TerminalProgress({"train", 4.1, "epochs"}, TerminalProgress::Style::lines).advanced(0.1, 0, "popularity");
  EXPECT_THAT(GetCapturedStderr(), MatchesRegex("train:   2%  popularity  [0-9.]+ s left\n"));
}

TEST(TerminalProgress, AutomaticMeansLinesWhenCaptured) {
  CaptureStderr();
  EXPECT_FALSE(TerminalProgress::stderr_is_terminal());
  TerminalProgress({"sweep", 1, "tokens"}).advanced(1, 1, "a");
  EXPECT_THAT(GetCapturedStderr(), StartsWith("sweep: 100%"));
}

TEST(TerminalProgress, NoWorkIsDoneAtOnce) {
  CaptureStderr();
  TerminalProgress({"sweep", 0, "tokens"}, TerminalProgress::Style::lines).advanced(0, 0, "nothing");
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("sweep: 100%"));
}

}  // namespace terminal_listener_test
}  // namespace gainlens::cli
