// The two programs: gainlens answers inspect and help without libtorch, and executes gainlens-compute for the rest.
#include "cli/tiny_checkpoint.h"
#include "support/program.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

namespace gainlens::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

const fs::path program = GAINLENS_PROGRAM;
const fs::path compute_program = program.parent_path() / "gainlens-compute";
const fs::path golden = GAINLENS_SOURCE_DIR "/tests/golden";

/// The files that the loader of the C library loads for a command.
std::string loaded_files(const std::string& arguments) {
  return run_shell("env LD_DEBUG=files " + program.string() + " " + arguments + " || true", "").error;
}

class LoadedLibraries : public ::testing::Test {
 protected:
  void SetUp() override {
    if (loaded_files("--version").find("libtorch") == std::string::npos)
      GTEST_SKIP() << "SKIPPED: the loader of this system does not tell what it loads";
  }
};

TEST_F(LoadedLibraries, InspectAndHelpNeedNoLibtorch) {
  const TemporaryFolder folder;
  const fs::path data = write_file(folder.path() / "data.txt", "1 1 2 3\n2 2 3 4\n3 1 3 4 2\n");
  for (const std::string& arguments : {"inspect " + data.string(), "--json inspect " + (golden / "absent").string(),
                                       "--threads 1 inspect --dtype bf16 " + (golden / "models").string(),
                                       std::string("--help"), std::string("inspect --help")}) {
    const std::string files = loaded_files(arguments);
    EXPECT_THAT(files, HasSubstr("libhdf5")) << arguments;
    EXPECT_THAT(files, Not(HasSubstr("libtorch"))) << arguments;
    EXPECT_THAT(files, Not(HasSubstr("libc10"))) << arguments;
  }
  EXPECT_THAT(loaded_files("inspect " + tiny_checkpoint.string()), HasSubstr("libtorch"))
      << "the speed of this machine is measured";
}

/// Without the available memory, which changes from moment to moment, and the speed.
std::string constant_part(const std::string& text) {
  static const std::regex available(R"([0-9.]+ [KMGT]?i?B available)"), bytes(R"("available": [0-9]+)");
  static const std::regex times(R"(about .* for each sequence, and .* for its likelihood)");
  static const std::regex rates(R"x("([a-z]+_)?(seconds|per_second)": [-+.e0-9]+)x");
  std::string constant = text;
  for (const auto& [changing, word] : {std::pair(available, "N available"), std::pair(bytes, "\"available\": N"),
                                       std::pair(times, "some time"), std::pair(rates, "\"rate\": N")})
    constant = std::regex_replace(constant, changing, word);
  return constant;
}

TEST(ReadingApplication, AnswersLikeTheProgramWithEverySubcommand) {
  const TemporaryFolder folder;
  const fs::path data = write_file(folder.path() / "data.txt", "1 1 2 3\n2 2 3 4\n3 1 3 4 2\n");
  const std::string tiny = tiny_checkpoint;
  const std::vector<std::vector<std::string>> command_lines = {
      {},
      {"--help"},
      {"--version"},
      {"--version", "inspect"},
      {"--help-all"},
      {"inspect"},
      {"inspect", "--help"},
      {"inspect", tiny, "--help"},
      {"--help", "inspect", "--no-such-option"},
      {"sweep", "--help"},
      {"train", "language-model", "--help"},
      {"inspect", tiny},
      {"inspect", tiny, "--json"},
      {"--json", "--quiet", "--seed", "3", "inspect", golden / "gguf/llama.gguf"},
      {"inspect", golden / "models/gpt-oss-mxfp4", "--dtype", "float64"},
      {"inspect", data, "--ties", "shuffle:1", "--min-item-count", "2"},
      {"inspect", data, "--ignore-config-key", "mystery"},
      {"inspect", golden / "absent"},
      {"inspect", tiny, "--dtype", "flaot32"},
      {"inspect", tiny, "--length", "x"},
      {"inspect", tiny, "--out="},
      {"inspect", tiny, "--length="},
      {"inspect", tiny, "--lenght", "8"},
      {"inspect", tiny, "sweep"},
      {"inspect", "sweep"},
      {"inspect", "--", "sweep"},
      {"inspect", tiny, tiny},
      {"inspect", tiny, "--threads", "-1"},
      {"inspect", tiny, "--threads", "123456789"},
      {"inspect", tiny, "--device", "cuda:0"},
      {"inspect", tiny, "--device", "tpu"},
      {"inspect", tiny, "--seed", "-1"},
      {"inspekt", tiny},
      {"--lenght", "3"},
      {"train"},
      {"hooks", tiny},
  };
  ASSERT_TRUE(fs::exists(golden / "models/gpt-oss-mxfp4"));
  for (const auto& arguments : command_lines) {
    std::string line;
    for (const std::string& word : arguments) line += " '" + word + "'";
    const auto found = run_gainlens(arguments);
    const auto expected = run_shell(compute_program.string() + line, "");
    EXPECT_EQ(found.exit_code, expected.exit_code) << line;
    EXPECT_EQ(constant_part(found.out), constant_part(expected.out)) << line;
    EXPECT_EQ(constant_part(found.error), constant_part(expected.error)) << line;
  }
}

TEST(ReadingApplication, FindsTheOtherProgramBehindALinkAndInThePath) {
  const TemporaryFolder folder;
  fs::create_symlink(program, folder.path() / "glens");
  for (const std::string& command : {(folder.path() / "glens").string(), std::string("glens")}) {
    const auto result = run_shell("PATH=" + folder.path().string() + ":$PATH; " + command + " --version", "/");
    EXPECT_EQ(result.exit_code, 0) << command << ": " << result.error;
    EXPECT_THAT(result.out, HasSubstr("products: float32 by ")) << command;
  }
}

TEST(ReadingApplication, SaysThatTheOtherProgramIsMissing) {
  const TemporaryFolder folder;
  const fs::path alone = folder.path() / "gainlens";
  fs::copy_file(program, alone);
  const fs::path data = write_file(folder.path() / "data.txt", "1 1 2 3\n2 2 3 4\n3 1 3 4 2\n");
  EXPECT_EQ(run_shell(alone.string() + " inspect " + data.string(), "").exit_code, 0);
  const auto result = run_shell(alone.string() + " hooks " + tiny_checkpoint.string(), "");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.error, "gainlens: error: " + fs::canonical(folder.path()).string() +
                              "/gainlens-compute: cannot be started: No such file or directory; gainlens needs it in "
                              "its own folder, install both again\n");
}

}  // namespace
}  // namespace gainlens::testing
