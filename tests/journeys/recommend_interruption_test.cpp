// A training of recommenders that is killed at random moments and resumed ends with the numbers of an uninterrupted
// one.
#include "core/random.h"
#include "support/file_bytes.h"
#include "support/program.h"
#include "support/shared_data.h"
#include "support/text_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <thread>

namespace gainlens::testing {
namespace recommend_interruption_test {

TEST(RecommendInterruption, KilledAtRandomMomentsAndResumedEqualsUninterrupted) {
  const TemporaryFolder folder;
  std::string ring;
  for (int user = 0; user < 300; ++user) {
    ring += std::to_string(user);
    for (int i = 0; i < 4 + user % 9; ++i) ring += " " + std::to_string((user * 5 + i) % 97 + 1);
    ring += "\n";
  }
  const std::string data = write_file(folder.path() / "ring.txt", ring);
  const auto arguments = [&](const std::string& out) {
    return std::vector<std::string>{
        "train",   "recommend", "--data",  data, "--out",   out,      "--seeds",   "3", "--epochs",     "20",
        "--width", "16",        "--batch", "32", "--quiet", "--json", "--threads", "2", "--save-every", "2"};
  };
  const std::string whole = folder.path() / "whole", broken = folder.path() / "broken";
  const auto begin = std::chrono::steady_clock::now();
  const ProgramResult first = run_gainlens(arguments(whole));
  ASSERT_EQ(first.exit_code, 0) << first.error;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

  Random random(21);
  for (int attempt = 0; attempt < 5; ++attempt) {
    const int process = start_gainlens(arguments(broken));
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds * (0.1 + 0.4 * random.uniform())));
    ::kill(process, SIGKILL);
    int status = 0;
    ::waitpid(process, &status, 0);
  }
  const ProgramResult last = run_gainlens(arguments(broken));
  ASSERT_EQ(last.exit_code, 0) << last.error;
  for (const char* seed : {"seed-0", "seed-1", "seed-2"}) {
    for (const char* file : {"model.safetensors", "result.safetensors", "training/state.safetensors"}) {
      const std::string name = "/plain/" + std::string(seed) + "/" + file;
      EXPECT_GT(bytes_of(whole + name).size(), 100u) << name;
      EXPECT_TRUE(bytes_of(whole + name) == bytes_of(broken + name)) << name;
    }
  }
}

}  // namespace recommend_interruption_test
}  // namespace gainlens::testing
