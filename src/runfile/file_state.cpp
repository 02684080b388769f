#include "runfile/file_state.h"

#include "core/check.h"
#include "core/file_descriptor.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>

namespace gainlens::runfile {
namespace {

std::int64_t nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

FileState state_of(const std::filesystem::path& file) {
  struct stat status {};
  CHECK(::stat(file.c_str(), &status) == 0, "{}: cannot be read: {}", printable(file.string()), system_reason());
  return {{{"size", std::int64_t{status.st_size}},
           {"mtime_ns", nanoseconds(status.st_mtim)},
           {"ctime_ns", nanoseconds(status.st_ctim)},
           {"inode", std::uint64_t{status.st_ino}},
           {"device", std::uint64_t{status.st_dev}}},
          std::max(status.st_mtim.tv_sec, status.st_ctim.tv_sec)};
}

WatchedFiles::WatchedFiles(const std::vector<std::filesystem::path>& files) {
  for (const std::filesystem::path& file : files) files_.emplace_back(file, state_of(file));
}

void WatchedFiles::check() const {
  for (const auto& [file, state] : files_) {
    CHECK(state_of(file) == state,
          "{}: was changed while it was used, so the last numbers are not stored; put it back, or repeat the command "
          "with another output folder",
          printable(file.string()));
  }
}

}  // namespace gainlens::runfile
