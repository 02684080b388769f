#pragma once

#include <filesystem>
#include <string_view>

namespace gainlens {

/// A fresh folder for files that are not wanted, or not there yet, when the work is done; it goes with the object, with
/// all that is in it.
class ScratchFolder {
 public:
  /// @param parent  where it is made: files can be renamed to places on the same file system
  /// @param prefix  of its name
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
