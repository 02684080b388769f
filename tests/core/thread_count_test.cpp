#include "core/thread_count.h"

#include "core/counted.h"
#include "core/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace gainlens {
namespace {

TEST(ThreadCount, TheBoundFollowsFromTheMachine) {
  const unsigned cores = std::thread::hardware_concurrency();
  EXPECT_GE(most_threads(), 64);
  EXPECT_GE(most_threads(), 4 * std::int64_t{cores});
  EXPECT_NO_THROW(check_threads(0));
  EXPECT_NO_THROW(check_threads(most_threads()));
  EXPECT_THAT([] { check_threads(most_threads() + 1); },
              ::testing::ThrowsMessage<InvalidArgument>(
                  fmt::format("--threads: {}; must be between 1 and {} on this machine, which has {}, or 0 for all "
                              "cores",
                              most_threads() + 1, most_threads(), counted(cores, "core"))));
  EXPECT_THROW(check_threads(-1), InvalidArgument);
}

}  // namespace
}  // namespace gainlens
