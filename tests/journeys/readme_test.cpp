#include "support/program.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <sstream>

namespace gainlens::testing {
namespace {

/// A command of the README with what it prints there.
struct Example {
  std::string command;
  std::string output;
};

/// The README's ```console blocks: lines that start with "$ " are commands, the others what they print.
std::vector<Example> readme_examples() {
  std::ifstream file(GAINLENS_SOURCE_DIR "/README.md");
  std::vector<Example> examples;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line == "```console") {
      inside = true;
    } else if (line == "```") {
      inside = false;
    } else if (inside && line.starts_with("$ ")) {
      examples.push_back({line.substr(2), ""});
    } else if (inside && !examples.empty()) {
      examples.back().output += line + "\n";
    }
  }
  return examples;
}

TEST(Readme, CommandsWorkAsPrinted) {
  const auto model = shared_data("models/tinystories-656K");
  const auto text = shared_data("wikitext-raw/wiki.valid.raw.gz");
  if (!model || !text) GTEST_SKIP() << "SKIPPED: shared data is absent (tinystories-656K, wiki.valid.raw.gz)";
  const TemporaryFolder folder;
  std::filesystem::create_directory_symlink(std::filesystem::absolute(*model), folder.path() / "checkpoint");
  std::filesystem::create_symlink(std::filesystem::absolute(*text), folder.path() / "wiki.txt.gz");
  const std::string path = "export PATH=" + std::filesystem::path(GAINLENS_PROGRAM).parent_path().string() + ":$PATH; ";

  const auto examples = readme_examples();
  ASSERT_GE(examples.size(), 5u);
  for (const Example& example : examples) {
    const auto result = run_shell(path + example.command, folder.path());
    EXPECT_EQ(result.exit_code, 0) << example.command << "\n" << result.error;
    EXPECT_EQ(result.out, example.output) << example.command;
  }
}

}  // namespace
}  // namespace gainlens::testing
