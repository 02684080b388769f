#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace gainlens::formats {

/// A file mapped into memory for reading, for as long as the object lives.
/// Precondition: nobody shortens the file meanwhile. Reading past its new end raises SIGBUS, which no check made at opening can
/// prevent; a file that is replaced by rename is safe, since the mapping keeps the old one.
class MappedFile {
 public:
  /// @throws InvalidArgument  missing, a dangling link, not a regular file, unreadable
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);

  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;  // empty for an empty file, which has no mapping
};

/// Gives the whole pages within these mapped bytes back to the system: they count as the process's memory until then, and come back from
/// the file when read again.
void release_pages(std::span<const std::byte> mapped);

}  // namespace gainlens::formats
