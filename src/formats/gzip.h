#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace gainlens::formats {

/// A file that is read once, from start to end, and unpacked if it starts with gzip's magic bytes. Several gzip members
/// in a row are joined; behind the last one zeros may stand, and nothing else. Takes memory for its buffers only,
/// whatever the size of the content.
class UnpackedFile {
 public:
  enum class Accepts {
    files,           ///< regular files only: in a folder that was fetched, a pipe would wait for ever
    files_and_pipes  ///< also pipes and sockets (/dev/stdin, the shell's <(...)), and "-", which is standard input
  };

  /// @throws InvalidArgument  missing, of a kind that is not accepted, cannot be opened
  explicit UnpackedFile(const std::filesystem::path& path, Accepts accepts = Accepts::files);
  UnpackedFile(UnpackedFile&&) noexcept;
  ~UnpackedFile();

  /// Appends the next bytes to `content`, at most `most`.
  /// @return how many; 0 only at the end of the file
  /// @throws InvalidArgument  unreadable, truncated or corrupt gzip
  std::size_t append_to(std::string& content, std::size_t most);
  /// Bytes that were unpacked so far.
  std::uint64_t position() const { return position_; }
  /// The file's name for messages.
  const std::string& where() const { return where_; }

 private:
  class Stream;
  std::unique_ptr<Stream> stream_;
  std::string where_;
  std::uint64_t position_ = 0;
};

/// Content of a file, unpacked if it starts with gzip's magic bytes. Several gzip members in a row are joined.
/// @param max_bytes  limit on the unpacked size
/// @throws InvalidArgument  missing, not a regular file, unreadable, truncated or corrupt gzip, larger than
/// `max_bytes`,
///     or larger than the memory that is available
std::string read_plain_or_gzip(const std::filesystem::path& path, std::uint64_t max_bytes,
                               UnpackedFile::Accepts accepts = UnpackedFile::Accepts::files);

}  // namespace gainlens::formats
