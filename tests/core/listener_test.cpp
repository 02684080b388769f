#include "core/listener.h"

#include "core/progress.h"
#include "support/recording_listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gainlens {
namespace listener_test {

using ::testing::ElementsAre;

/// Writes down what becomes of a work.
class WorkDiary : public Listener {
 public:
  class OfWork : public WorkListener {
   public:
    explicit OfWork(std::vector<std::string>& lines) : lines_(lines) {}
    ~OfWork() override { lines_.emplace_back("ended"); }
    void advanced(double cost, double amount, std::string_view label) override {
      lines_.push_back(fmt::format("{} {} {}", cost, amount, label));
    }
    void skipped(double cost, std::string_view label) override { lines_.push_back(fmt::format("-{} {}", cost, label)); }

   private:
    std::vector<std::string>& lines_;
  };

  void notice(const Notice& /*notice*/) override {}
  std::unique_ptr<WorkListener> begun(const Work& work) override {
    lines.push_back(fmt::format("{} {} {}", work.title, work.cost, work.unit));
    return std::make_unique<OfWork>(lines);
  }

  std::vector<std::string> lines;
};

TEST(Listener, WithoutOneNobodyIsTold) {
  ::testing::internal::CaptureStderr();
  tell_note("nobody");
  Progress progress("work", 2, "steps");
  progress.advance(1, 1, "one");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(Listener, TheInnermostIsToldAndTheOneBeforeItComesBack) {
  const testing::RecordingListener outer;
  tell_note("{}", 1);
  {
    const testing::RecordingListener inner;
    tell_warning("{}", 2);
    EXPECT_THAT(inner.notices(), ElementsAre("warning: 2"));
  }
  tell_note("{}", 3);
  EXPECT_THAT(outer.notices(), ElementsAre("1", "3"));
}

TEST(Progress, TellsOfItsWorkUntilItEnds) {
  WorkDiary diary;
  const ScopedListener told(diary);
  Progress progress("train", 4, "epochs");
  progress.advance(1, 2, "first");
  progress.skip(3, "ended early");
  progress.finish();
  progress.advance(1, 1, "too late");
  EXPECT_THAT(diary.lines, ElementsAre("train 4 epochs", "1 2 first", "-3 ended early", "ended"));
  Progress("train", 4, "epochs", true).advance(1, 1, "quiet");
  EXPECT_EQ(diary.lines.size(), 4u);
}

}  // namespace listener_test
}  // namespace gainlens
