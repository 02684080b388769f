#pragma once

#include <filesystem>
#include <string_view>

namespace gainlens {

/// Writes `content` so that a reader, or a crash at any moment, sees the old file or the new one, never a part:
/// `path`.tmp, fsync, rename, fsync of the folder.
/// @throws RunFailed        the disk is full or the write fails
/// @throws InvalidArgument  the folder does not exist or is not writable
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

/// fsync of an already written file, then rename to `final_path` and fsync of its folder. Throws as write_file_atomically.
void publish_file(const std::filesystem::path& temporary, const std::filesystem::path& final_path);

/// `final_path`.tmp, for content too large to hold in one string: write it, then publish(). Unpublished, it is removed with the object.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& final_path);
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();

  const std::filesystem::path& path() const { return path_; }
  /// publish_file to the final path.
  void publish();

 private:
  std::filesystem::path final_path_;
  std::filesystem::path path_;
  bool published_ = false;
};

/// Creates the folder (and parents) if need be and proves that a file can be written in it.
/// @throws InvalidArgument  it exists as something else, cannot be created or cannot be written to
void ensure_writable_folder(const std::filesystem::path& folder);

}  // namespace gainlens
