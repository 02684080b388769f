#include "core/scratch_folder.h"

#include "core/error.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <string>
#include <system_error>
#include <vector>

namespace gainlens {
namespace {

constexpr std::string_view filled_in = "XXXXXX";  // by mkdtemp

FileDescriptor opened_folder(const std::filesystem::path& path) {
  return FileDescriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

/// Locks the folder, as soon as no other process has it locked. Does nothing on a file system without locks on folders:
/// there nobody can lock a folder and take it for abandoned.
void lock(const FileDescriptor& folder) {
  int result = 0;
  do result = ::flock(folder.get(), LOCK_EX);
  while (result != 0 && errno == EINTR);
}

bool has_scratch_name(const std::filesystem::path& path, std::string_view prefix) {
  const std::string name = path.filename().string();
  return name.starts_with(prefix) && name.size() == prefix.size() + filled_in.size();
}

}  // namespace

bool is_still_at(const FileDescriptor& file, const std::filesystem::path& path) {
  struct stat open {
  }, there{};
  return ::fstat(file.get(), &open) == 0 && ::lstat(path.c_str(), &there) == 0 && open.st_dev == there.st_dev &&
         open.st_ino == there.st_ino;
}

ScratchFolder::ScratchFolder(const std::filesystem::path& parent, std::string_view prefix) {
  // Before the folder is locked, another process may take it for abandoned and remove it. Then another one is made.
  do {
    std::string pattern = (parent / prefix).string().append(filled_in);
    if (::mkdtemp(pattern.data()) == nullptr)
      throw_run_failed("{}: no temporary folder can be made in it", printable(parent.string()));
    path_ = pattern;
    lock_ = opened_folder(path_);
    if (lock_.get() < 0 && errno != ENOENT)
      throw_run_failed("{}: cannot be opened: {}", printable(path_.string()), system_reason());
    lock(lock_);
  } while (!is_still_at(lock_, path_));
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void remove_abandoned_folders(const std::filesystem::path& parent, std::string_view prefix) {
  std::error_code ignored;
  std::vector<std::filesystem::path> found;
  for (std::filesystem::directory_iterator entry(parent, ignored), end; entry != end; entry.increment(ignored)) {
    if (has_scratch_name(entry->path(), prefix)) found.push_back(entry->path());
  }
  for (const std::filesystem::path& path : found) {
    const FileDescriptor folder = opened_folder(path);
    if (folder.get() < 0 || ::flock(folder.get(), LOCK_EX | LOCK_NB) != 0 || !is_still_at(folder, path)) continue;
    std::filesystem::remove_all(path, ignored);
  }
}

}  // namespace gainlens
