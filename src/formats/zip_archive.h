#pragma once

#include "formats/mapped_file.h"

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace gainlens::formats {

/// A zip archive whose entries are stored as they are, such as PyTorch writes (APPNOTE.TXT 6.3, with zip64). It is
/// memory-mapped. Checksums of entries are not compared: PyTorch may leave them out.
class ZipArchive {
 public:
  /// @throws InvalidArgument  missing; not a zip archive; cut short; in several parts; an entry that is compressed,
  ///     encrypted, there twice, or reaches beyond the file
  static ZipArchive open(const std::filesystem::path& path);

  const std::map<std::string, std::span<const std::byte>, std::less<>>& entries() const { return entries_; }
  /// @throws InvalidArgument  no such entry
  std::span<const std::byte> at(std::string_view name) const;
  const std::shared_ptr<const MappedFile>& file() const { return file_; }
  std::string where() const;  ///< the path, for messages

 private:
  std::shared_ptr<const MappedFile> file_;
  std::map<std::string, std::span<const std::byte>, std::less<>> entries_;  // the bytes lie in file_
};

}  // namespace gainlens::formats
