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
namespace interruption_test {

/// Kills a command at random moments, lets it end, and compares what it has made with what one call makes.
/// @param words  without --out
/// @param file   in the run folder
/// @param kills  random moments
void expect_same_after_kills(std::vector<std::string> words, const std::string& file, int kills = 6) {
  const TemporaryFolder folder;
  words.insert(words.end(), {"--quiet", "--threads", "1", "--out", ""});
  const auto arguments = [&](const std::string& out) {
    words.back() = out;
    return words;
  };
  const std::string whole = folder.path() / "whole";
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(run_gainlens(arguments(whole)).exit_code, 0);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

  std::mt19937 random(20);
  const std::string broken = folder.path() / "broken";
  for (int attempt = 0; attempt < kills; ++attempt) {
    const int process = start_gainlens(arguments(broken));
    std::this_thread::sleep_for(
        std::chrono::duration<double>(seconds * std::uniform_real_distribution(0.1, 1.0)(random)));
    ::kill(process, SIGKILL);
    int status = 0;
    ::waitpid(process, &status, 0);
  }
  ASSERT_EQ(run_gainlens(arguments(broken)).exit_code, 0);
  EXPECT_EQ(bytes_of(whole + file), bytes_of(broken + file));
  EXPECT_EQ(bytes_of(whole + "/manifest.jsonl"), bytes_of(broken + "/manifest.jsonl"));
  EXPECT_GT(bytes_of(whole + file).size(), 1000u);
}

const std::string demo_folder = GAINLENS_SOURCE_DIR "/data/demo";

TEST(Interruption, KilledAtRandomMomentsAndResumedEqualsUninterrupted) {
  expect_same_after_kills({"sweep", demo_folder + "/gated", "--text", demo_folder + "/text.txt", "--lengths", "64,128",
                           "--samples", "4", "--per-query"},
                          "/run.h5");
}

TEST(Interruption, OfInterventionsToo) {
  expect_same_after_kills({"intervene", demo_folder + "/gated", "--text", demo_folder + "/text.txt", "--lengths", "64",
                           "--samples", "3", "--each-kv-head", "--modes", "zero,resample"},
                          "/intervene.json", 10);
}

TEST(Interruption, OfActivationPatchingToo) {
  expect_same_after_kills({"intervene", demo_folder + "/gated", "--clean", "The man and the old dog are", "--corrupt",
                           "The man and the old dog is", "--answer", "the", "--foil", "a"},
                          "/patching.json", 10);
}

TEST(Interruption, OfArmsForGatesToo) {
  const TemporaryFolder folder;
  const std::string text = bytes_of(demo_folder + "/text.txt");  // its second half shares nothing with the test
  const std::string calibration =
      write_file(folder.path() / "calibration.txt", text.substr(text.find('\n', text.size() / 2)));
  expect_same_after_kills({"gate-arms", demo_folder + "/gated", "--text", demo_folder + "/text.txt", "--calibration",
                           calibration, "--trained-length", "64", "--targets", "16", "--samples", "2",
                           "--few-documents", "--arms", "gain,permuted,position"},
                          "/gate-arms.json");
}

}  // namespace interruption_test
}  // namespace gainlens::testing
