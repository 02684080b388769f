#include "core/regular_file.h"

#include "core/check.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <system_error>

namespace gainlens {
namespace {

constexpr const char* no_regular_file = "not a regular file; pipes and devices are not read here";

}  // namespace

FileDescriptor try_open_regular_file(const std::filesystem::path& path, std::string& reason) {
  // O_NONBLOCK: opening a pipe does not wait for a writer. Reading a regular file does not change with it.
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (file.get() < 0 && (errno == ENOENT || errno == ENOTDIR)) {
    reason = "no such file";
  } else if (file.get() < 0 && errno == ENXIO) {  // a socket, or a device that is not there
    reason = no_regular_file;
  } else if (file.get() < 0 || ::fstat(file.get(), &status) != 0) {
    reason = "cannot be opened for reading: " + system_reason();
    return FileDescriptor(-1);
  } else if (!S_ISREG(status.st_mode)) {
    reason = S_ISDIR(status.st_mode) ? "a folder; a file is needed here" : no_regular_file;
    return FileDescriptor(-1);
  }
  return file;
}

FileDescriptor open_regular_file(const std::filesystem::path& path) {
  std::string reason;
  FileDescriptor file = try_open_regular_file(path, reason);
  CHECK(file.get() >= 0, "{}: {}", printable(path.string()), reason);
  return file;
}

void check_may_be_read(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::file_status found = std::filesystem::status(path, error);
  CHECK(!std::filesystem::exists(found) || std::filesystem::is_regular_file(found) ||
            std::filesystem::is_directory(found),
        "{}: {}", printable(path.string()), no_regular_file);
}

void refuse_lfs_pointer(std::string_view start, std::uintmax_t size, std::string_view where) {
  constexpr std::uintmax_t max_bytes = 1024;  // by the specification of Git LFS
  CHECK(
      size >= max_bytes || !start.starts_with("version https://git-lfs.github.com/spec/"),
      "{}: a pointer of Git LFS, in place of the file itself; run 'git lfs pull' in its folder, or fetch the file with "
      "'hf download'",
      where);
}

}  // namespace gainlens
