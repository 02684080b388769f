#include "runfile/folder_lock.h"

#include "core/atomic_file.h"
#include "core/check.h"
#include "core/scratch_folder.h"

#include <fcntl.h>
#include <sys/file.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>

namespace gainlens::runfile {
namespace {

/// The process id in the lock file; "unknown" if there is none.
std::string holder_of(const FileDescriptor& file) {
  std::array<char, 32> holder{};
  const ssize_t size = ::pread(file.get(), holder.data(), holder.size(), 0);
  return size > 0 ? printable(std::string(holder.data(), static_cast<std::size_t>(size))) : "unknown";
}

/// Locks the file for this process alone. A reader that looks whether the run is being written holds the lock for a
/// moment, so a lock that is taken is tried again for 100 ms. Returns false, with errno set, if it stays taken.
bool lock_alone(const FileDescriptor& file) {
  constexpr int attempts = 20;
  for (int attempt = 1; ::flock(file.get(), LOCK_EX | LOCK_NB) != 0; ++attempt) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK || attempt == attempts) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

FileDescriptor locked_file(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "lock";
  constexpr int attempts = 100;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (file.get() < 0) throw_cannot_be_made(printable(folder.string()) + ": the file 'lock' cannot be opened");
    if (!lock_alone(file)) {
      CHECK(errno == EWOULDBLOCK, "{}: cannot be locked: {}; use a folder on a file system with locks",
            printable(folder.string()), system_reason());
      throw_invalid("{}: process {} is writing this run; wait until it ends, or give another output folder",
                    printable(folder.string()), holder_of(file));
    }
    // A call that is refused removes its lock. The lock of a removed file is nobody's.
    if (is_still_at(file, path)) return file;
  }
  throw_invalid("{}: 'lock' is a link, or is removed again and again; remove it", printable(folder.string()));
}

}  // namespace

FolderLock::FolderLock(const std::filesystem::path& folder) : file_(locked_file(folder)) {
  // The id is only shown in messages of other processes. The lock works without it, so a full disk does no harm here.
  const std::string self = std::to_string(::getpid());
  [[maybe_unused]] const bool shown =
      ::ftruncate(file_.get(), 0) == 0 && ::pwrite(file_.get(), self.data(), self.size(), 0) > 0;
}

void check_not_being_written(const std::filesystem::path& folder) {
  const FileDescriptor file(
      ::open((folder / "lock").c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a pipe does not hold us up
  if (file.get() < 0) return;  // never locked, or not readable (e.g. a copy on a read-only disk)
  if (::flock(file.get(), LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  throw_invalid("{}: process {} is writing this run, so its numbers still change; wait until it ends",
                printable(folder.string()), holder_of(file));
}

}  // namespace gainlens::runfile
