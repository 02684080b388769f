#pragma once

#include "core/file_descriptor.h"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace gainlens::formats {

/// A file mapped into memory for reading, as long as the object lives. The file must not be shortened meanwhile: past
/// its new end, a read gives zeros up to the end of that page and raises SIGBUS after it. check_still_whole() detects
/// the first case; the program turns the second into a message (cli/program_start.h). Replacing the file by rename is
/// safe, because the mapping keeps the old file.
class MappedFile {
 public:
  /// @throws InvalidArgument  missing, a dangling link, not a regular file, unreadable, a pointer of Git LFS
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);

  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::filesystem::path& path() const { return path_; }

  /// @throws InvalidArgument  the file has become shorter than its mapping
  void check_still_whole() const;

 private:
  MappedFile(std::filesystem::path path, FileDescriptor file, std::span<const std::byte> bytes);

  std::filesystem::path path_;
  FileDescriptor file_;               // kept open for check_still_whole(): the path may lead to another file by then
  std::span<const std::byte> bytes_;  // empty for an empty file, which has no mapping
};

/// Gives the whole pages within these mapped bytes back to the system. Until then they count as memory of the process.
/// They are read from the file again when needed.
void release_pages(std::span<const std::byte> mapped);

}  // namespace gainlens::formats
