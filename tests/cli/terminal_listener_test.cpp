#include "core/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

namespace gainlens {
namespace {

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

TEST(Progress, LinesShowTheFirstAndTheLastOfQuickWork) {
  CaptureStderr();
  {
    Progress progress("sweep", 100, "tokens", Progress::Style::lines);
    for (int step = 0; step < 10; ++step) progress.advance(10, 512, "chunk " + std::to_string(step));
  }
  const std::string shown = GetCapturedStderr();
  EXPECT_EQ(lines_in(shown), 2) << shown;  // the first and the last; the eight between come within two seconds
  EXPECT_THAT(shown, StartsWith("sweep:  10%  chunk 0  "));
  EXPECT_THAT(shown, HasSubstr("left\nsweep: 100%  chunk 9  "));
  EXPECT_THAT(shown, EndsWith("done in 0.0 s\n"));
  EXPECT_THAT(shown, Not(HasSubstr("\r")));
}

TEST(Progress, LineNamesShareLabelRateAndTimeLeft) {
  CaptureStderr();
  Progress("sweep", 4, "tokens", Progress::Style::lines).advance(1, 512, "1k, sample 3");
  EXPECT_THAT(GetCapturedStderr(), MatchesRegex("sweep:  25%  1k, sample 3  [0-9]+ tokens/s  [0-9.]+ s left\n"));
}

TEST(Progress, ShareFollowsCostNotSteps) {
  CaptureStderr();
  Progress("sweep", 100, "tokens", Progress::Style::lines).advance(64, 1, "long");
  EXPECT_THAT(GetCapturedStderr(), HasSubstr(" 64%"));
}

TEST(Progress, SumsThatRoundStillEnd) {
  CaptureStderr();
  {
    Progress progress("sweep", 1.0, "tokens", Progress::Style::lines);
    for (int step = 0; step < 10; ++step) progress.advance(0.1, 1, "");  // 0.1 added ten times is 0.9999999999999999
  }
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("done in"));
}

TEST(Progress, TerminalRedrawsOneLineAndEndsIt) {
  CaptureStderr();
  {
    Progress progress("sweep", 2, "tokens", Progress::Style::terminal);
    progress.advance(1, 512, "a");
    progress.advance(1, 512, "b");
    progress.finish();
  }  // the destructor must not end the line a second time
  const std::string shown = GetCapturedStderr();
  EXPECT_THAT(shown, StartsWith("\r\033[Ksweep [############------------]  50%  a"));
  EXPECT_THAT(shown, HasSubstr("\r\033[Ksweep [########################] 100%  b"));
  EXPECT_EQ(lines_in(shown), 1);
  EXPECT_THAT(shown, EndsWith("\n"));
}

TEST(Progress, QuietSaysNothing) {
  CaptureStderr();
  Progress("sweep", 1, "tokens", Progress::Style::quiet).advance(1, 1, "a");
  EXPECT_EQ(GetCapturedStderr(), "");
}

TEST(Progress, SkippedWorkLeavesShareAndTimeLeft) {
  CaptureStderr();
  {
    Progress progress("train", 120, "epochs", Progress::Style::lines);
    progress.skip(80, "two of three were done before");  // first line: nothing of 40 is done
    for (int epoch = 0; epoch < 10; ++epoch) progress.advance(1, 1, "epoch");
    progress.skip(30, "ended early");
  }
  const std::string shown = GetCapturedStderr();
  EXPECT_THAT(shown, StartsWith("train:   0%  two of three were done before  begins\n"));  // without a rate
  EXPECT_THAT(shown, MatchesRegex(".*train: 100%  ended early  [0-9]+ epochs/s  done in [0-9.]+ s\n"));
}

TEST(Progress, SlowWorkHasARate) {
  CaptureStderr();
  {
    Progress progress("train", 2, "epochs", Progress::Style::lines);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    progress.advance(1, 0.001, "slow");  // at most 3 in a minute
    progress.advance(1, 0, "and nothing");
  }
  EXPECT_THAT(GetCapturedStderr(),
              AllOf(HasSubstr(" epochs/"), Not(HasSubstr(" epochs/s")), Not(HasSubstr(" 0 epochs"))));
}

TEST(Progress, WorkWithoutAnAmountHasNoRate) {
  CaptureStderr();
  Progress("train", 4.1, "epochs", Progress::Style::lines).advance(0.1, 0, "popularity");
  EXPECT_THAT(GetCapturedStderr(), MatchesRegex("train:   2%  popularity  [0-9.]+ s left\n"));
}

TEST(Progress, AutomaticMeansLinesWhenCaptured) {
  CaptureStderr();
  EXPECT_FALSE(Progress::stderr_is_terminal());
  Progress("sweep", 1, "tokens").advance(1, 1, "a");
  EXPECT_THAT(GetCapturedStderr(), StartsWith("sweep: 100%"));
}

TEST(Progress, NoWorkIsDoneAtOnce) {
  CaptureStderr();
  Progress("sweep", 0, "tokens", Progress::Style::lines).advance(0, 0, "nothing");
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("sweep: 100%"));
}

}  // namespace
}  // namespace gainlens
