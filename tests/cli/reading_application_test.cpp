// The two programs: gainlens answers inspect and help without libtorch, and executes gainlens-compute for the rest.
#include "cli/tiny_checkpoint.h"
#include "support/file_bytes.h"
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
namespace reading_application_test {

namespace fs = std::filesystem;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const fs::path program = GAINLENS_PROGRAM;
const fs::path compute_program = program.parent_path() / "gainlens-compute";
const fs::path golden = GAINLENS_SOURCE_DIR "/tests/golden";

/// The files that the loader of the C library loads for a command.
std::string loaded_files(const std::string& arguments) {
  return run_shell("env LD_DEBUG=files " + shell_word(program) + " " + arguments + " || true", "").error;
}

class LoadedLibraries : public ::testing::Test {
 protected:
  void SetUp() override {
    if (loaded_files("--version").find("libtorch") == std::string::npos)
      GTEST_SKIP() << "SKIPPED: the loader of this system does not tell what it loads";
  }
};

TEST_F(LoadedLibraries, InspectAndHelpNeedNoLibtorch) {
  ASSERT_TRUE(fs::exists(golden / "models/qwen3-moe"));
  const TemporaryFolder folder;
  const fs::path data = write_file(folder.path() / "data.txt", "1 1 2 3\n2 2 3 4\n3 1 3 4 2\n");
  for (const std::string& arguments :
       {"inspect " + shell_word(tiny_checkpoint), "--json inspect " + shell_word(golden / "gguf/llama.gguf"),
        "inspect " + data.string(), "inspect " + (golden / "absent").string(),
        "--threads 1 inspect --dtype bf16 " + (golden / "models/qwen3-moe").string(), std::string("--help"),
        std::string("inspect --help")}) {
    const std::string files = loaded_files(arguments);
    EXPECT_THAT(files, HasSubstr("libhdf5")) << arguments;
    EXPECT_THAT(files, Not(HasSubstr("libtorch"))) << arguments;
    EXPECT_THAT(files, Not(HasSubstr("libc10"))) << arguments;
  }
  EXPECT_THAT(loaded_files("inspect --length 64 " + shell_word(tiny_checkpoint)), HasSubstr("libtorch"))
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
      {"--json", "--quiet", "--threads", "3", "inspect", golden / "gguf/llama.gguf"},
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
      {"inspect", tiny, "--seed", "3"},
      {"inspekt", tiny},
      {"inspekt", tiny, "--lenght", "3"},
      {"--lenght", "3"},
      {"train"},
      {"hooks", tiny},
  };
  ASSERT_TRUE(fs::exists(golden / "models/gpt-oss-mxfp4"));
  for (const auto& arguments : command_lines) {
    std::string line;
    for (const std::string& word : arguments) line += " '" + word + "'";
    const auto found = run_gainlens(arguments);
    const auto expected = run_shell(shell_word(compute_program) + line, "");
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

/// A copy of gainlens, and what lies beside it in place of the other program.
class OtherProgram : public ::testing::Test {
 protected:
  void SetUp() override { fs::copy_file(program, copy_); }
  ProgramResult run(const std::string& arguments) const {
    return run_shell("exec timeout 20 " + copy_.string() + " " + arguments, "");
  }
  /// What `hooks`, which needs the other program, is answered with.
  std::string refusal() const {
    const auto result = run("hooks " + shell_word(tiny_checkpoint));
    EXPECT_EQ(result.exit_code, 1) << result.out << result.error;
    EXPECT_EQ(std::ranges::count(result.error, '\n'), 1) << result.error;
    EXPECT_THAT(result.error, StartsWith("gainlens: error: " + other_.string() + ": "));
    return result.error;
  }
  void expect_answers_without_it() const {
    const auto version = run("--version");
    EXPECT_EQ(version.exit_code, 0);
    EXPECT_THAT(version.out, StartsWith("gainlens "));
    EXPECT_THAT(version.error, StartsWith("gainlens: warning: " + other_.string()));
    EXPECT_EQ(run("--help").exit_code, 0);
    EXPECT_EQ(run("inspect " + shell_word(tiny_checkpoint)).exit_code, 0);
    for (const auto& [line, message] : std::vector<std::pair<std::string, std::string>>{
             {"", "a subcommand is required"},
             {"swep --length 3", "unknown subcommand 'swep'; did you mean 'sweep'?"},
             {"--sed 3", "unknown option '--sed'; did you mean '--seed'?"},
             {"inspect --lenght 3", "unknown option '--lenght'; did you mean '--length'?"}}) {
      const auto result = run(line);
      EXPECT_EQ(result.exit_code, 2) << line;
      EXPECT_THAT(result.error, HasSubstr(message)) << line;
    }
  }

  TemporaryFolder folder_;
  fs::path copy_ = fs::canonical(folder_.path()) / "gainlens", other_ = copy_.parent_path() / "gainlens-compute";
};

TEST_F(OtherProgram, ThatIsMissingIsNamed) {
  EXPECT_THAT(refusal(), HasSubstr("/gainlens-compute: cannot be started: No such file or directory; gainlens needs it "
                                   "in its own folder, install both again\n"));
  expect_answers_without_it();
}

TEST_F(OtherProgram, ThatIsThisOneIsNotStarted) {
  fs::copy_file(program, other_);
  EXPECT_THAT(refusal(), HasSubstr(": is the program gainlens, not gainlens-compute; "));
  for (const fs::path& target : {copy_, program}) {
    fs::remove(other_);
    fs::create_symlink(target, other_);
    EXPECT_THAT(refusal(), HasSubstr(": is the program gainlens, not gainlens-compute; "));
  }
  expect_answers_without_it();
}

TEST_F(OtherProgram, ThatIsCutShortIsNotStarted) {
  const std::uintmax_t size = fs::file_size(compute_program);
  fs::copy_file(compute_program, other_);
  for (const std::uintmax_t bytes : {size - 1, size / 2, std::uintmax_t{4096}, std::uintmax_t{63}, std::uintmax_t{0}}) {
    fs::resize_file(other_, bytes);
    EXPECT_THAT(refusal(), HasSubstr(": is cut short; ")) << bytes;
  }
  write_file(other_, "#!/bin/sh\necho started\n" + std::string(100, ' '));
  fs::permissions(other_, fs::perms::owner_all);
  EXPECT_THAT(refusal(), HasSubstr(": is not a program of gainlens; "));
  fs::remove(other_);
  fs::copy_file("/bin/sh", other_);
  EXPECT_THAT(refusal(), HasSubstr(": is not a program of gainlens"));
  expect_answers_without_it();
}

TEST_F(OtherProgram, OfAnotherBuildIsNotStarted) {
  std::string bytes = bytes_of(compute_program);
  const std::string begin = "gainlens-compute\n";
  const std::size_t stamp = bytes.find(begin);
  ASSERT_NE(stamp, std::string::npos);
  bytes[stamp + begin.size()] = '9';  // the version
  write_file(other_, bytes);
  fs::permissions(other_, fs::perms::owner_all);
  EXPECT_THAT(refusal(), ContainsRegex(": is of another build \\(9[^)]*\\) than gainlens \\([0-9][^)]*\\); "));
  expect_answers_without_it();
}

TEST(ReadingApplication, ADeletedWorkingFolderIsSaid) {
  const TemporaryFolder folder;
  for (const std::string& begun : {shell_word(program), shell_word(compute_program)}) {
    for (const std::string& command : {"hooks " + shell_word(tiny_checkpoint), std::string("--version")}) {
      const auto result =
          run_shell("mkdir gone && cd gone && rmdir ../gone && exec " + begun + " " + command, folder.path());
      EXPECT_EQ(result.exit_code, 2) << begun << " " << command;
      EXPECT_EQ(result.error,
                "gainlens: error: the working folder was deleted; change to one that exists (cd) and run the command "
                "again\n");
    }
  }
}

}  // namespace reading_application_test
}  // namespace gainlens::testing
