// Paths that cannot be followed, a system without threads, and weights that change during a sweep. Each must end with
// one line, and nothing wrong may be stored.
#include "cli/tiny_checkpoint.h"
#include "core/json.h"
#include "support/program.h"
#include "support/shared_data.h"
#include "support/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>

namespace gainlens::testing {
namespace hostile_input_test {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

void expect_refused(const std::vector<std::string>& arguments, const std::string& text) {
  const ProgramResult result = run_gainlens(arguments);
  EXPECT_EQ(result.exit_code, 2) << arguments.front() << ": " << result.error;
  EXPECT_THAT(result.error, StartsWith("gainlens: error: "));
  EXPECT_THAT(result.error, HasSubstr(text)) << arguments.front();
  EXPECT_THAT(result.error, Not(HasSubstr("filesystem error"))) << arguments.front();
  EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
}

TEST(Paths, ThatCannotBeFollowedAreNamedWithTheReason) {
  const TemporaryFolder folder;
  const std::string model = tiny_checkpoint, ids = write_ids(folder.path(), 100), out = folder.path() / "out";
  const fs::path loop = folder.path() / "loop", other = folder.path() / "other";
  fs::create_symlink(other, loop);
  fs::create_symlink(loop, other);
  struct Place {
    std::string path, reason;
  };
  for (const auto& [path, reason] :
       {Place{loop, "loop: Too many levels of symbolic links"}, Place{
                                                                    folder.path() / std::string(300, 'a'),
                                                                    "aaa... (",
                                                                }}) {
    expect_refused({"inspect", path}, reason);
    expect_refused({"report", path}, reason);
    expect_refused({"compare", path, path}, reason);
    expect_refused({"sweep", model, "--tokens", ids, "--lengths", "16", "--out", path}, reason);
  }
  fs::create_symlink(folder.path() / "nothing", folder.path() / "dangling");
  expect_refused({"sweep", model, "--tokens", ids, "--lengths", "16", "--out", folder.path() / "dangling"},
                 "dangling: cannot be used as an output folder: it is a link to ");
  // A tokenizer behind a loop of links.
  const fs::path copy = copy_checkpoint(folder.path());
  write_file(folder.path() / "text", std::string("a text"));
  fs::create_symlink(loop, copy / "tokenizer.json");
  expect_refused({"sweep", copy, "--text", folder.path() / "text", "--lengths", "16", "--out", out},
                 "tokenizer.json: cannot be read: Too many levels of symbolic links");
}

TEST(Threads, ThatTheSystemDoesNotGiveEndInOneLine) {
  const TemporaryFolder folder;
  int refused = 0;
  // How much the program itself takes depends on libtorch. Somewhere in between it starts and lacks room for threads.
  for (int megabytes = 300; megabytes <= 1000; megabytes += 50) {
    const ProgramResult result = run_shell(fmt::format("ulimit -v {} && exec timeout 60 {} hooks {} --threads 8",
                                                       megabytes * 1024, QUOTED_PROGRAM, shell_word(tiny_checkpoint)),
                                           folder.path());
    EXPECT_NE(result.exit_code, 124) << "with " << megabytes << " MB it hangs";
    if (result.error.find("could not be started") == std::string::npos) continue;
    ++refused;
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.error, StartsWith("gainlens: error: --threads: 8 threads could not be started: "));
  }
  EXPECT_GT(refused, 0);
}

TEST(Weights, ThatChangeDuringASweepEndIt) {
  const TemporaryFolder folder;
  const fs::path model = copy_checkpoint(folder.path()), shards = folder.path() / "run/shards";
  constexpr int samples = 900;
  const int sweep =
      start_gainlens({"sweep", model, "--tokens", write_ids(folder.path(), 16 * samples), "--lengths", "16",
                      "--samples", std::to_string(samples), "--threads", "1", "--out", folder.path() / "run"});
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!fs::exists(shards / "T16-S0.h5") && std::chrono::steady_clock::now() < give_up)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ASSERT_TRUE(fs::exists(shards / "T16-S0.h5"));
  {
    const auto time = fs::last_write_time(model / "model.safetensors");
    std::fstream weights(model / "model.safetensors", std::ios::binary | std::ios::in | std::ios::out);
    weights.seekp(-8, std::ios::end);
    weights << std::string(8, '\0');
    weights.close();
    fs::last_write_time(model / "model.safetensors", time);
  }
  int status = 0;
  ::waitpid(sweep, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 2);
  EXPECT_FALSE(fs::exists(folder.path() / "run/run.h5"));
}

}  // namespace hostile_input_test
}  // namespace gainlens::testing
