// Commands near the limit of memory: they end in one line and not by a signal, wherever the limit is.
#include "cli/tiny_checkpoint.h"
#include "support/program.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

namespace gainlens::testing {
namespace memory_limits_test {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr int step = 4 << 10;  // KiB

/// With two threads, as libtorch's own pools start with.
ProgramResult run_limited(int kib, const std::string& arguments, const std::string& kind = "-v") {
  return run_shell("ulimit -c 0; ulimit " + kind + " " + std::to_string(kib) +
                       " && OMP_NUM_THREADS=2 exec " QUOTED_PROGRAM " " + arguments,
                   "");
}

/// The least limit, in KiB, at which a command works.
template <typename Works>
int least_limit(const Works& works) {
  int too_little = 0, enough = 16 << 20;
  if (!works(enough)) return 0;
  while (enough - too_little > step) {
    const int middle = too_little + (enough - too_little) / 2;
    (works(middle) ? enough : too_little) = middle;
  }
  return enough;
}

class MemoryLimits : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "SKIPPED: AddressSanitizer reserves more address space than any limit allows";
#endif
    // Below it, the loader ends gainlens itself: none of its code runs.
    least_ = least_limit([](int kib) { return run_limited(kib, "--help").exit_code == 0; });
    ASSERT_GT(least_, 0);
    least_that_computes_ = least_limit([](int kib) {
      const auto result = run_limited(kib, "--version");
      return result.exit_code == 0 && result.error.empty();
    });
    ASSERT_GT(least_that_computes_, least_);
  }

  static void expect_one_line(const ProgramResult& result, const std::string& what) {
    EXPECT_THAT(result.exit_code, AnyOf(0, 1, 2)) << what << ": " << result.error;
    std::istringstream lines(result.error);
    int errors = 0;
    for (std::string line; std::getline(lines, line);) {
      EXPECT_THAT(line, AnyOf(StartsWith("gainlens: error: "), StartsWith("gainlens: warning: "))) << what;
      if (line.starts_with("gainlens: error: ")) ++errors;
    }
    EXPECT_EQ(errors, result.exit_code == 0 ? 0 : 1) << what << ": " << result.error;
    EXPECT_THAT(result.error, Not(HasSubstr("fetch the file again"))) << what;  // the files are whole
  }

  std::string sweep_into(const std::string& run) const {
    return "--quiet --threads 2 sweep " + shell_word(demo_ + "/plain") + " --text " + shell_word(demo_ + "/text.txt") +
           " --lengths 512 --samples 1 --out " + (folder_.path() / run).string();
  }

  TemporaryFolder folder_;
  std::string demo_ = GAINLENS_SOURCE_DIR "/data/demo";
  int least_ = 0, least_that_computes_ = 0;
};

TEST_F(MemoryLimits, ASweepEndsInOneLine) {
  int limit = least_that_computes_ - 2 * step, succeeded = 0;
  for (int i = 0; i < 40 && succeeded < 3; ++i, limit += step) {
    const auto result = run_limited(limit, sweep_into(std::to_string(i)));
    expect_one_line(result, std::to_string(limit) + " KiB");
    succeeded = result.exit_code == 0 ? succeeded + 1 : 0;
  }
  EXPECT_EQ(succeeded, 3) << "no limit up to " << limit << " KiB is enough";
}

TEST_F(MemoryLimits, SoDoesEachCommandWhereLibtorchHardlyFits) {
  const std::string text = shell_word(demo_ + "/text.txt"), model = shell_word(demo_ + "/plain");
  for (const int limit : {(least_ + least_that_computes_) / 2, least_that_computes_ - step, least_that_computes_,
                          least_that_computes_ + step}) {
    const std::vector<std::string> commands = {
        "hooks " + model,
        "capture " + model + " --text " + text + " --length 64 --hooks hook_embed --out " +
            (folder_.path() / std::to_string(limit)).string(),
        "--quiet estimators --draws 10 --n-eff 2", "inspect " + model, sweep_into("run" + std::to_string(limit))};
    for (const std::string& command : commands)
      expect_one_line(run_limited(limit, command), command + " with " + std::to_string(limit) + " KiB");
  }
}

TEST_F(MemoryLimits, ALimitOfDataToo) {
  const int least = least_limit([](int kib) { return run_limited(kib, "--help", "-d").exit_code == 0; });
  ASSERT_GT(least, 0);
  for (int limit = least; limit < 1 << 20; limit *= 2)
    expect_one_line(run_limited(limit, sweep_into("data" + std::to_string(limit)), "-d"),
                    std::to_string(limit) + " KiB");
}

}  // namespace memory_limits_test
}  // namespace gainlens::testing
