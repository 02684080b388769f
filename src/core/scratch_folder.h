#pragma once

#include <filesystem>
#include <string_view>

namespace gainlens {

/// A new folder for temporary files. The destructor removes it with everything in it.
class ScratchFolder {
 public:
  /// @param parent  the folder is made in it; files can be renamed from there to other places on the same file system
  /// @param prefix  start of the folder's name
  /// @throws RunFailed  it cannot be made
  ScratchFolder(const std::filesystem::path& parent, std::string_view prefix);
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder();

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace gainlens
