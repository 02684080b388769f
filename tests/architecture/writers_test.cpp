// All writing and printing must go through the parts that check the result: core/atomic_file.h, core/console.h,
// runfile/hdf5.h. Libraries print nothing: they tell a listener (core/listener.h), and the program prints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

namespace gainlens::testing {
namespace {

namespace fs = std::filesystem;

/// Uses of words in the folders of the program, for example "src/core/json.cpp:12: fopen(".
/// @param allowed  whether a file may use a word
std::vector<std::string> uses_of(const std::vector<std::string>& words, const fs::path& root,
                                 const std::function<bool(const std::string& path, const std::string& word)>& allowed) {
  std::vector<std::string> uses;
  for (const char* folder : {"src", "data", "hooks", "analyses", "reports"}) {
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

TEST(Writers, LibrariesPrintNothing) {
  const auto allowed = [](const std::string& path, const std::string& /*word*/) {
    return path.starts_with("src/cli/") || path.starts_with("src/core/console.");
  };
  EXPECT_THAT(uses_of({"print_notice(", "print_result(", "write_notice(", "write_result(", "write_control(",
                       "core/console.h", "stderr", "stdout", "printf(", "std::puts(", "fputs("},
                      GAINLENS_SOURCE_DIR, allowed),
              ::testing::IsEmpty());
}

}  // namespace
}  // namespace gainlens::testing
