// All writing and printing must go through the parts that check the result: core/atomic_file.h, core/console.h,
// runfile/hdf5.h.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace gainlens::testing {
namespace {

namespace fs = std::filesystem;

/// All other uses in the folders of the program, for example "src/core/json.cpp:12: fopen(".
std::vector<std::string> unchecked_writers(const fs::path& root) {
  std::vector<std::string> uses;
  for (const char* folder : {"src", "data", "hooks", "analyses", "reports"}) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const fs::path path = fs::relative(entry.path(), root);
      if (path.extension() != ".cpp" && path.extension() != ".h") continue;
      std::ifstream file(entry.path());
      std::string line;
      for (int number = 1; std::getline(file, line); ++number) {
        for (const char* word : {"fmt::print(", "std::cout", "std::cerr", "std::ofstream", "std::fstream", "fopen(",
                                 "popen(", "H5Fcreate("}) {
          const bool allowed = path == "src/runfile/hdf5.cpp" && std::string(word) == "H5Fcreate(";
          if (!allowed && line.find(word) != std::string::npos)
            uses.push_back(path.string() + ":" + std::to_string(number) + ": " + word);
        }
      }
    }
  }
  return uses;
}

TEST(Writers, OnlyTheCheckedOnesAreUsed) {
  EXPECT_THAT(unchecked_writers(GAINLENS_SOURCE_DIR), ::testing::IsEmpty());
}

}  // namespace
}  // namespace gainlens::testing
