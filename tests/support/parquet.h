#pragma once

#include <filesystem>
#include <string>

namespace gainlens::testing {

/// A file of tests/data/golden.
inline std::filesystem::path parquet_file(const std::string& name) {
  return std::filesystem::path(GAINLENS_SOURCE_DIR "/tests/data/golden") / name;
}

}  // namespace gainlens::testing
