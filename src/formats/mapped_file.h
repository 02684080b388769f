#pragma once

#include "core/file_descriptor.h"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace gainlens::formats {

/// A file mapped into memory for reading, for as long as the object lives. Nobody may shorten the file meanwhile: what
/// is read past its new end is zero up to the end of that page, and raises SIGBUS beyond. check_still_whole tells the
/// first case; the program turns the second into a message (cli/bus_error.h). A file that is replaced by rename is
/// safe, since the mapping keeps the old one.
class MappedFile {
 public:
  /// @throws InvalidArgument  missing, a dangling link, not a regular file, unreadable
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
  FileDescriptor file_;               // kept open to ask for the size: the path may lead to another file by now
  std::span<const std::byte> bytes_;  // empty for an empty file, which has no mapping
};

/// Gives the whole pages within these mapped bytes back to the system: they count as the process's memory until then,
/// and come back from the file when read again.
void release_pages(std::span<const std::byte> mapped);

}  // namespace gainlens::formats
