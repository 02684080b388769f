#include "support/file_bytes.h"
#include "support/program.h"
#include "support/shared_data.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <random>
#include <thread>

namespace gainlens::testing {
namespace {

TEST(Interruption, KilledAtRandomMomentsAndResumedEqualsUninterrupted) {
  const std::string demo = GAINLENS_SOURCE_DIR "/data/demo";
  const TemporaryFolder folder;
  const auto arguments = [&](const std::string& out) {
    return std::vector<std::string>{
        "sweep", demo + "/gated", "--text", demo + "/text.txt", "--lengths", "64,128",    "--samples",
        "4",     "--out",         out,      "--per-query",      "--quiet",   "--threads", "1"};
  };
  const std::string whole = folder.path() / "whole";
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(run_gainlens(arguments(whole)).exit_code, 0);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

  std::mt19937 random(20);
  const std::string broken = folder.path() / "broken";
  for (int attempt = 0; attempt < 6; ++attempt) {
    const int process = start_gainlens(arguments(broken));
    std::this_thread::sleep_for(
        std::chrono::duration<double>(seconds * std::uniform_real_distribution(0.1, 1.0)(random)));
    ::kill(process, SIGKILL);
    int status = 0;
    ::waitpid(process, &status, 0);
  }
  ASSERT_EQ(run_gainlens(arguments(broken)).exit_code, 0);
  EXPECT_EQ(bytes_of(whole + "/run.h5"), bytes_of(broken + "/run.h5"));
  EXPECT_GT(bytes_of(whole + "/run.h5").size(), 1000u);
}

}  // namespace
}  // namespace gainlens::testing
