// How the program's threads wait on a busy machine. The OpenMP library itself prints the settings that it has read.
#include "support/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

namespace gainlens::testing {
namespace thread_waiting_test {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string program = QUOTED_PROGRAM;

/// What libgomp prints when the program starts with these variables.
std::string settings(const std::string& variables) {
  const auto result = run_shell("env -u OMP_WAIT_POLICY -u GOMP_SPINCOUNT -u OMP_NUM_THREADS OMP_DISPLAY_ENV=verbose " +
                                    variables + " " + program + " --version",
                                "");
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.out, HasSubstr("gainlens "));
  return result.error;
}

/// The number of running threads that the system reports; 0 if it reports none.
int running_threads() {
  std::ifstream file("/proc/loadavg");
  std::string load;
  for (int field = 0; field < 3; ++field) file >> load;
  int running = 0;
  file >> running;
  return running;
}

/// Runs with twice as many busy processes as there are processors.
class ThreadWaiting : public ::testing::Test {
 protected:
  void SetUp() override {
    if (settings("A=1").find("GOMP_SPINCOUNT") == std::string::npos)
      GTEST_SKIP() << "SKIPPED: libtorch does not use libgomp here";
    for (long i = 0; i < 2 * ::sysconf(_SC_NPROCESSORS_ONLN); ++i) {
      const pid_t child = ::fork();
      if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (volatile bool forever = true; forever;) {
        }
      }
      busy_.push_back(child);
    }
    ::usleep(100'000);
    if (running_threads() < static_cast<int>(busy_.size()))
      GTEST_SKIP() << "SKIPPED: /proc/loadavg does not count the running threads here";
  }
  void TearDown() override {
    for (const pid_t child : busy_) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
  }

 private:
  std::vector<pid_t> busy_;
};

TEST_F(ThreadWaiting, IsShortOnABusyMachineUnlessTheUserChoosesIt) {
  EXPECT_THAT(settings("A=1"), HasSubstr("GOMP_SPINCOUNT = '300'"));
  EXPECT_THAT(settings("GOMP_SPINCOUNT=77"), HasSubstr("GOMP_SPINCOUNT = '77'"));
  EXPECT_THAT(settings("OMP_WAIT_POLICY=active"), HasSubstr("OMP_WAIT_POLICY = 'ACTIVE'"));
  EXPECT_THAT(settings("OMP_WAIT_POLICY=active"), Not(HasSubstr("GOMP_SPINCOUNT = '300'")));
  EXPECT_THAT(settings("OMP_NUM_THREADS=1"), Not(HasSubstr("GOMP_SPINCOUNT = '300'"))) << "one thread waits for nobody";
}

TEST_F(ThreadWaiting, KeepsArgumentsFilesAndExitCode) {
  const std::string start = "unset OMP_WAIT_POLICY GOMP_SPINCOUNT OMP_NUM_THREADS; ";
  const auto wrong = run_shell(start + program + " inspect 'two  words' 2>&1", "");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_EQ(wrong.out, "gainlens: error: two  words: no such file or folder\n");
  const auto closed = run_shell(start + program + " inspect 'two  words' 2>&-", "");
  EXPECT_EQ(closed.exit_code, 2);
}

TEST_F(ThreadWaiting, WorksThroughTheLoader) {
  const auto result = run_shell("unset OMP_NUM_THREADS; /lib64/ld-linux-x86-64.so.2 " + program + " --version", "");
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.out, HasSubstr("gainlens "));
}

}  // namespace thread_waiting_test
}  // namespace gainlens::testing
