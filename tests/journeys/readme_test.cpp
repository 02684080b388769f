// Runs the commands of the README, of the tutorials and of docs/look.md, and compares their output with the printed
// output.
#include "support/printed_text.h"
#include "support/program.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

namespace gainlens::testing {
namespace readme_test {

/// A command of a document, and the output printed there.
struct Example {
  std::string command;
  std::string output;
};

/// The commands in the ```console blocks of a document. Lines that start with "$ " are commands, the other lines are
/// their output.
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

class Document : public ::testing::TestWithParam<std::string> {};

/// Runs in a new folder, in which `data` is a link to the repository's folder, with gainlens on the PATH.
TEST_P(Document, CommandsWorkAsPrinted) {
  const TemporaryFolder folder;
  std::filesystem::create_directory_symlink(std::filesystem::path(GAINLENS_SOURCE_DIR) / "data",
                                            folder.path() / "data");
  const std::string path =
      "export PATH=" + shell_word(std::filesystem::path(GAINLENS_PROGRAM).parent_path()) + ":$PATH; ";

  const auto examples = examples_in(GetParam());
  ASSERT_GE(examples.size(), 5u);
  for (const Example& example : examples) {
    const auto result = run_shell(path + example.command, folder.path());
    EXPECT_EQ(result.exit_code, 0) << example.command << "\n" << result.error;
    EXPECT_EQ(difference_of_printed(example.output, result.out), "") << example.command;
  }
}

TEST(PrintedText, NumbersMayDifferInTheirLastPlaceAlone) {
  EXPECT_EQ(difference_of_printed("r +0.198, p 1.3e-01\n60 heads", "r +0.199, p 1.4e-01\n60 heads\n"), "");
  EXPECT_EQ(difference_of_printed("x +0.000", "x -0.000"), "");
  EXPECT_EQ(difference_of_printed("x 9.99", "x 10.00"), "");
  EXPECT_EQ(difference_of_printed("3 MiB; 12 GiB available", "3 MiB; 1.5 GiB available"), "");
  EXPECT_EQ(difference_of_printed("about 0.1 s for each sequence, and 0.0 s for its likelihood",
                                  "about 2 min for each sequence, and 3.1 s for its likelihood"),
            "");
  EXPECT_NE(difference_of_printed("3 MiB; 12 GiB available", "4 MiB; 12 GiB available"), "");
  for (const auto& [expected, found] :
       {std::pair{"r +0.198", "r +0.200"}, std::pair{"p 1.3e-01", "p 1.3e-02"}, std::pair{"60 heads", "61 heads"},
        std::pair{"a 1.0", "b 1.0"}, std::pair{"a 1.0", "a  1.0"}, std::pair{"one line", "one line\nmore"},
        std::pair{"two\nlines", "two"}, std::pair{"x 1.0", "x 1.0 2"}}) {
    EXPECT_NE(difference_of_printed(expected, found), "") << expected << " / " << found;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Document,
                         ::testing::Values("README.md", "docs/tutorial.md", "docs/recommend-tutorial.md",
                                           "docs/look.md"),
                         [](const auto& test) {
                           if (test.param == "README.md") return "Readme";
                           if (test.param == "docs/look.md") return "Look";
                           return test.param == "docs/tutorial.md" ? "Tutorial" : "RecommendTutorial";
                         });

}  // namespace readme_test
}  // namespace gainlens::testing
