// How the program's threads wait. The OpenMP library itself prints the settings that it has read.
#include "support/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gainlens::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string program = GAINLENS_PROGRAM;

/// What libgomp prints when the program starts with these variables.
std::string settings(const std::string& variables) {
  const auto result = run_shell(
      "env -u OMP_WAIT_POLICY -u GOMP_SPINCOUNT OMP_DISPLAY_ENV=verbose " + variables + " " + program + " --version",
      "");
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.out, HasSubstr("gainlens "));
  return result.error;
}

class ThreadWaiting : public ::testing::Test {
 protected:
  void SetUp() override {
    if (settings("A=1").find("GOMP_SPINCOUNT") == std::string::npos)
      GTEST_SKIP() << "SKIPPED: libtorch does not use libgomp here";
  }
};

TEST_F(ThreadWaiting, IsShortUnlessTheUserChoosesIt) {
  EXPECT_THAT(settings("A=1"), HasSubstr("GOMP_SPINCOUNT = '1000'"));
  EXPECT_THAT(settings("GOMP_SPINCOUNT=77"), HasSubstr("GOMP_SPINCOUNT = '77'"));
  EXPECT_THAT(settings("OMP_WAIT_POLICY=active"), HasSubstr("OMP_WAIT_POLICY = 'ACTIVE'"));
  EXPECT_THAT(settings("OMP_WAIT_POLICY=active"), Not(HasSubstr("GOMP_SPINCOUNT = '1000'")));
}

TEST_F(ThreadWaiting, KeepsArgumentsFilesAndExitCode) {
  const std::string start = "unset OMP_WAIT_POLICY GOMP_SPINCOUNT; ";
  const auto wrong = run_shell(start + program + " inspect 'two  words' 2>&1", "");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_EQ(wrong.out, "gainlens: error: two  words: no such file or folder\n");
  const auto closed = run_shell(start + program + " inspect 'two  words' 2>&-", "");
  EXPECT_EQ(closed.exit_code, 2);
}

TEST_F(ThreadWaiting, WorksThroughTheLoader) {
  const auto result = run_shell("/lib64/ld-linux-x86-64.so.2 " + program + " --version", "");
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.out, HasSubstr("gainlens "));
}

}  // namespace
}  // namespace gainlens::testing
