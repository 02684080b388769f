#include "core/thread_count.h"

#include "core/counted.h"
#include "core/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>

namespace gainlens {
namespace thread_count_test {

TEST(ThreadCount, TheBoundFollowsFromTheMachine) {
  const unsigned cores = std::thread::hardware_concurrency();
  EXPECT_GE(max_threads(), 64);
  EXPECT_GE(max_threads(), 4 * std::int64_t{cores});
  EXPECT_NO_THROW(check_threads(0));
  EXPECT_NO_THROW(check_threads(max_threads()));
  EXPECT_THAT([] { check_threads(max_threads() + 1); },
              ::testing::ThrowsMessage<InvalidArgument>(
                  fmt::format("--threads: {}; must be between 1 and {} on this machine, which has {}, or 0 for all "
                              "cores",
                              max_threads() + 1, max_threads(), counted(cores, "core"))));
  EXPECT_THROW(check_threads(-1), InvalidArgument);
}

TEST(ThreadCount, ThreadsThatTheSystemDoesNotGiveAreAFailure) {
  EXPECT_NO_THROW(check_threads_can_start(1));
  EXPECT_NO_THROW(check_threads_can_start(4));
  // In a process with memory for a few stacks alone.
  const pid_t child = ::fork();
  if (child == 0) {
    std::int64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t used = static_cast<rlim_t>(pages * ::sysconf(_SC_PAGESIZE));
    const rlimit limit{used + (rlim_t{32} << 20), used + (rlim_t{32} << 20)};
    ::setrlimit(RLIMIT_AS, &limit);
    try {
      check_threads_can_start(64);
    } catch (const RunFailed& error) {
      ::_exit(std::string(error.what()).starts_with("--threads: 64 threads could not be started: ") ? 3 : 4);
    } catch (...) {
      ::_exit(5);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 3);
}

}  // namespace thread_count_test
}  // namespace gainlens
