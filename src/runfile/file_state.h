#pragma once

#include "core/json.h"

#include <ctime>
#include <filesystem>
#include <utility>
#include <vector>

namespace gainlens::runfile {

/// What the system says of a file. It differs once the file was changed or replaced, also if its modification time was
/// set back: the time of the last change (ctime) cannot be set.
struct FileState {
  Json signature;           ///< size, modification time, ctime, inode and device
  std::time_t changed = 0;  ///< the later of modification time and ctime

  bool operator==(const FileState&) const = default;
};

/// @throws InvalidArgument  there is no such file, or it cannot be reached
FileState state_of(const std::filesystem::path& file);

/// Files that must stay as they are while they are used: what is computed from them is stored under their checksums.
class WatchedFiles {
 public:
  WatchedFiles() = default;
  /// Remembers the state of the files. To be made before the checksums are taken. @throws InvalidArgument  as state_of
  explicit WatchedFiles(const std::vector<std::filesystem::path>& files);

  /// @throws InvalidArgument  one of them (it is named) was changed, replaced or removed since the object was made
  void check() const;

 private:
  std::vector<std::pair<std::filesystem::path, FileState>> files_;
};

}  // namespace gainlens::runfile
