#include "bench/timing.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

namespace gainlens::bench {
namespace timing_test {

TEST(RunTimes, MedianAndQuartilesByHand) {
  const RunTimes odd = summarise({5, 1, 3, 2, 4});
  EXPECT_EQ(odd.median, 3);
  EXPECT_EQ(odd.low, 2);
  EXPECT_EQ(odd.high, 4);
  EXPECT_EQ(odd.runs, 5);
  const RunTimes even = summarise({1, 2});
  EXPECT_EQ(even.median, 1.5);
  EXPECT_EQ(even.low, 1.25);
  const RunTimes one = summarise({7});
  EXPECT_EQ(one.low, 7);
  EXPECT_EQ(one.high, 7);
}

TEST(InterleavedTimes, MethodsTakeTurns) {
  std::string order;
  const std::function<void()> methods[] = {[&] { order += 'a'; }, [&] { order += 'b'; }};
  const auto times = interleaved_times(methods, {.repeats = 3});
  EXPECT_EQ(order, "ababab");
  EXPECT_EQ(times[0].runs, 3);
  EXPECT_GE(times[0].median, 0);
}

TEST(InterleavedTimes, ASlowMethodIsLeftOutOfLaterRounds) {
  std::string order;
  const std::function<void()> methods[] = {[&] { order += 'f'; },
                                           [&] {
                                             order += 's';
                                             std::this_thread::sleep_for(std::chrono::milliseconds(2));
                                           }};
  interleaved_times(methods, {.least = 2, .seconds = 1e-3, .most = 5});
  EXPECT_EQ(order, "fsfsfff");  // s uses up its millisecond in the smallest number of runs; f runs the largest number
}

}  // namespace timing_test
}  // namespace gainlens::bench
