// All writing and printing must go through the parts that check the result: core/atomic_file.h, core/console.h,
// runfile/hdf5.h. Libraries print nothing: they tell a listener (core/listener.h), and the program prints.
#include "architecture/repository.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

namespace gainlens::testing {
namespace writers_test {

namespace fs = std::filesystem;

/// Uses of words in the folders of the program, for example "src/core/json.cpp:12: fopen(".
/// @param allowed  whether a file may use a word
std::vector<std::string> uses_of(const std::vector<std::string>& words, const fs::path& root,
                                 const std::function<bool(const std::string& path, const std::string& word)>& allowed) {
  std::vector<std::string> uses;
  for (const char* folder : {"src", "hooks", "analyses", "reports"}) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const fs::path path = fs::relative(entry.path(), root);
      if (path.extension() != ".cpp" && path.extension() != ".h") continue;
      std::ifstream file(entry.path());
      std::string line;
      for (int number = 1; std::getline(file, line); ++number) {
        for (const std::string& word : words) {
          if (line.find(word) != std::string::npos && !allowed(path.string(), word))
            uses.push_back(path.string() + ":" + std::to_string(number) + ": " + word);
        }
      }
    }
  }
  return uses;
}

TEST(Writers, OnlyTheCheckedOnesAreUsed) {
  const auto allowed = [](const std::string& path, const std::string& word) {
    return path == "src/runfile/hdf5.cpp" && word == "H5Fcreate(";
  };
  EXPECT_THAT(uses_of({"fmt::print(", "std::cout", "std::cerr", "std::ofstream", "std::fstream", "fopen(", "popen(",
                       "H5Fcreate("},
                      GAINLENS_SOURCE_DIR, allowed),
              ::testing::IsEmpty());
}

/// Read once: reading them takes as long as all that the tests do.
const std::vector<SourceLine>& lines_of_sources() {
  static const std::vector<SourceLine> lines = lines_of(GAINLENS_SOURCE_DIR, {".cpp", ".h"});
  return lines;
}

/// The lines of the repository that hold a word, without those of some files.
std::vector<std::string> places_of(const std::string& word, const std::vector<std::string>& allowed) {
  std::vector<std::string> places;
  for (const SourceLine& line : lines_of_sources()) {
    if (line.text.find(word) != std::string::npos && std::ranges::find(allowed, line.file) == allowed.end())
      places.push_back(line.place());
  }
  return places;
}

TEST(OneWay, ToPcre2) {
  EXPECT_THAT(places_of("#include <pcre2"
                        ".h>",
                        {"src/core/pcre2.h"}),
              ::testing::IsEmpty());
}

/// reports/page/page_style.h has its form.
TEST(OneWay, ToTheTitleOfAPage) {
  std::vector<std::string> others;
  for (const SourceLine& line : lines_of_sources()) {
    if (line.file.starts_with("reports/") && line.text.find("report.title = ") != std::string::npos &&
        line.text.find("_title(") == std::string::npos)
      others.push_back(line.place());
  }
  EXPECT_THAT(others, ::testing::IsEmpty());
}

/// A table of a page is sortable, and in LaTeX and CSV (analyses/table.h). Text of a terminal is neither.
TEST(OneWay, ToATableOfAPage) {
  std::vector<std::string> pasted;
  for (const std::string& place : places_of("<p"
                                            "re",
                                            {}))
    if (place.starts_with("reports/")) pasted.push_back(place);
  EXPECT_THAT(pasted, ::testing::IsEmpty());
}

/// Shells split a path at its blanks: QUOTED_PROGRAM (support/program.h) stands in their lines.
TEST(OneWay, ToTheProgramInALineOfAShell) {
  for (const std::string line : {"GAINLENS_PROGRAM"
                                 " \" ",
                                 "\" "
                                 "GAINLENS_PROGRAM"})
    EXPECT_THAT(places_of(line, {"tests/support/program.h"}), ::testing::IsEmpty()) << line;
}

TEST(Writers, LibrariesPrintNothing) {
  const auto allowed = [](const std::string& path, const std::string& /*word*/) {
    return path.starts_with("src/cli/") || path.starts_with("src/core/console.");
  };
  EXPECT_THAT(uses_of({"print_notice(", "print_result(", "write_notice(", "write_result(", "write_control(",
                       "core/console.h", "stderr", "stdout", "printf(", "std::puts(", "fputs("},
                      GAINLENS_SOURCE_DIR, allowed),
              ::testing::IsEmpty());
}

}  // namespace writers_test
}  // namespace gainlens::testing
