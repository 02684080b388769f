// A training that is killed at random moments and resumed ends with the weights of an uninterrupted training, byte for
// byte.
#include "language/language_testing.h"
#include "support/file_bytes.h"
#include "support/program.h"
#include "support/shared_data.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <thread>

namespace gainlens::testing {
namespace training_interruption_test {

TEST(TrainingInterruption, KilledAtRandomMomentsAndResumedEqualsUninterrupted) {
  const TemporaryFolder folder;
  const auto text = write_text(folder.path() / "text.txt", made_up_text(1500));
  Json recipe = small_recipe();
  recipe["stages"] = {{{"context", 16}, {"steps", 250}}, {{"context", 32}, {"steps", 150}}};
  const auto config = write_text(folder.path() / "recipe.json", recipe.dump());
  const auto arguments = [&](const std::string& out) {
    return std::vector<std::string>{"train",   "language-model", "--config", config.string(),
                                    "--text",  text.string(),    "--out",    out,
                                    "--quiet", "--threads",      "1"};
  };
  const std::string whole = folder.path() / "whole", broken = folder.path() / "broken";
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(run_gainlens(arguments(whole)).exit_code, 0);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

  Random random(20);
  for (int attempt = 0; attempt < 5; ++attempt) {
    const int process = start_gainlens(arguments(broken));
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds * (0.1 + 0.5 * random.uniform())));
    ::kill(process, SIGKILL);
    int status = 0;
    ::waitpid(process, &status, 0);
  }
  const ProgramResult last = run_gainlens(arguments(broken));
  ASSERT_EQ(last.exit_code, 0) << last.error;
  for (const char* file : {"model.safetensors", "config.json", "tokenizer.model", "training/state.safetensors",
                           "training/history.csv", "training/loss-curve.svg"}) {
    EXPECT_TRUE(bytes_of(whole + "/" + file) == bytes_of(broken + "/" + file)) << file;
    EXPECT_GT(bytes_of(whole + "/" + file).size(), 100u) << file;
  }
}

}  // namespace training_interruption_test
}  // namespace gainlens::testing
