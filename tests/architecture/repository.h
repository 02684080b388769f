#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace gainlens::testing {

/// A line of a file of the repository.
struct SourceLine {
  std::string file;  ///< relative to the root
  int number;        ///< from 1
  std::string text;

  std::string place() const { return file + ":" + std::to_string(number); }
};

/// Every line of the repository's own text files with one of these endings or names ("CMakeLists.txt"), except builds,
/// test data and hidden folders; sorted by file.
std::vector<SourceLine> lines_of(const std::filesystem::path& root, const std::vector<std::string>& endings);

}  // namespace gainlens::testing
