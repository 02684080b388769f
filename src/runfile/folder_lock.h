#pragma once

#include "core/file_descriptor.h"

#include <filesystem>

namespace gainlens::runfile {

/// Keeps every other process from writing a run folder: flock on the file `lock` in it. The lock is released when the
/// object is destroyed or the process ends, also by a crash.
class FolderLock {
 public:
  /// Waits up to 100 ms for a reader (check_not_being_written) that holds the lock for a moment.
  /// @throws InvalidArgument  another process (its id is shown) has the lock, or the folder cannot be locked
  explicit FolderLock(const std::filesystem::path& folder);

 private:
  FileDescriptor file_;
};

/// Checks, for readers, that no process is writing the run. Holds no lock afterwards.
/// @throws InvalidArgument  another process (its id is shown) has the lock
void check_not_being_written(const std::filesystem::path& folder);

}  // namespace gainlens::runfile
