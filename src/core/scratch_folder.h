#pragma once

#include "core/file_descriptor.h"

#include <filesystem>
#include <string_view>

namespace gainlens {

/// Whether the path still leads to the open file or folder: another process may have removed it, and made a new one.
bool is_still_at(const FileDescriptor& file, const std::filesystem::path& path);

/// A new folder for temporary files. The destructor removes it with everything in it. A lock (flock) shows other
/// processes that its process lives. The system releases it when the process ends, also by a crash or a kill.
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
  FileDescriptor lock_{-1};
};

/// Removes the scratch folders in `parent` whose processes have died. A folder stays if its process lives, or if the
/// file system has no locks on folders. No failure is reported.
/// @param prefix  only folders with names that a ScratchFolder of this prefix gets
void remove_abandoned_folders(const std::filesystem::path& parent, std::string_view prefix);

}  // namespace gainlens
