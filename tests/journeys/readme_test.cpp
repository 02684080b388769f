// The commands of the README and of the tutorial do what is printed there.
#include "support/program.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

namespace gainlens::testing {
namespace {

/// A command of a document with what it prints there.
struct Example {
  std::string command;
  std::string output;
};

/// The document's ```console blocks: lines that start with "$ " are commands, the others what they print.
std::vector<Example> examples_in(const std::string& document) {
  std::ifstream file(std::filesystem::path(GAINLENS_SOURCE_DIR) / document);
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

class Document : public ::testing::TestWithParam<const char*> {};

/// In an empty folder beside which `data` is the repository's, with gainlens on the PATH.
TEST_P(Document, CommandsWorkAsPrinted) {
  const TemporaryFolder folder;
  std::filesystem::create_directory_symlink(std::filesystem::path(GAINLENS_SOURCE_DIR) / "data", folder.path() / "data");
  const std::string path = "export PATH=" + std::filesystem::path(GAINLENS_PROGRAM).parent_path().string() + ":$PATH; ";

  const auto examples = examples_in(GetParam());
  ASSERT_GE(examples.size(), 5u);
  for (const Example& example : examples) {
    const auto result = run_shell(path + example.command, folder.path());
    EXPECT_EQ(result.exit_code, 0) << example.command << "\n" << result.error;
    EXPECT_EQ(result.out, example.output) << example.command;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Document, ::testing::Values("README.md", "docs/tutorial.md"),
                         [](const auto& test) { return std::string(test.param) == "README.md" ? "Readme" : "Tutorial"; });

}  // namespace
}  // namespace gainlens::testing
