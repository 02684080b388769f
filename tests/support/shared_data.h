#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace gainlens::testing {

/// A file or folder of the shared test data. The data lie in the folder GAINLENS_SHARED_DATA, or in ../shared/data next
/// to the project if this variable is not set. Empty if the file is absent: the test then skips with this reason.
inline std::optional<std::filesystem::path> shared_data(const std::string& relative) {
  const char* root = std::getenv("GAINLENS_SHARED_DATA");
  const std::filesystem::path folder =
      root != nullptr ? std::filesystem::path(root) : std::filesystem::path(GAINLENS_SOURCE_DIR "/../shared/data");
  const std::filesystem::path path = folder / relative;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  return path;
}

/// A new folder, which is removed with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "gainlens-test-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace gainlens::testing
