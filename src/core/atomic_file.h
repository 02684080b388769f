#pragma once

#include "core/file_descriptor.h"

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace gainlens {

/// A file that is being written. There is nothing to close: what hands it out flushes and closes it, with a check.
class OutputFile {
 public:
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// @throws RunFailed  the disk is full or the write fails
  void write(std::string_view bytes);

 private:
  friend void write_file_atomically(const std::filesystem::path& path, const std::function<void(OutputFile&)>& fill);
  OutputFile(const std::filesystem::path& path, std::string shown);
  void write_buffer();
  void flush_and_close();

  FileDescriptor file_;
  std::string shown_;
  std::string buffer_;
};

/// Writes a file so that a reader, or a crash at any moment, sees the old one or the new one, never a part: `path`.tmp,
/// fsync, close, rename, fsync of the folder. After any failure nothing of the new file is left.
/// @throws RunFailed        the disk is full, or a write, a flush or the closing fails
/// @throws InvalidArgument  the folder does not exist or is not writable
void write_file_atomically(const std::filesystem::path& path, std::string_view content);
/// The same for content too large to hold in one string.
void write_file_atomically(const std::filesystem::path& path, const std::function<void(OutputFile&)>& fill);

/// fsync of an already written file, then rename to `final_path` and fsync of its folder.
/// @throws RunFailed  one of them fails
void publish_file(const std::filesystem::path& temporary, const std::filesystem::path& final_path);

/// fsync of a written file, and the system is asked to forget its pages: who reads the file next reads what the disk
/// holds.
/// @throws RunFailed  the flush fails
void flush_to_disk(const std::filesystem::path& path);

/// For files that a library writes: `final_path`.tmp, or another name beside it. Write it, close it, flush_to_disk,
/// then publish(). Unpublished, it is removed with the object.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& final_path);
  TemporaryFile(const std::filesystem::path& final_path, std::filesystem::path temporary);
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();

  const std::filesystem::path& path() const { return path_; }
  /// rename of the flushed file to the final path and fsync of its folder.
  /// @throws RunFailed  one of them fails
  void publish();

 private:
  std::filesystem::path final_path_;
  std::filesystem::path path_;
  bool published_ = false;
};

/// Says why a file or folder could not be made, from errno.
/// @param what  "<path>: cannot be written"
/// @throws RunFailed        no room, too many open files, a broken disk: the same request may work later
/// @throws InvalidArgument  anything else: the place is wrong
[[noreturn]] void throw_cannot_be_made(const std::string& what);

/// Makes one folder in one that is there; that it is there already is fine.
/// @throws RunFailed, InvalidArgument  as throw_cannot_be_made
void make_folder(const std::filesystem::path& folder);

/// Creates the folder (and parents) if need be and proves that a file can be written in it.
/// @throws InvalidArgument  it exists as something else, cannot be created or cannot be written to
/// @throws RunFailed        there is no room in it
void ensure_writable_folder(const std::filesystem::path& folder);

}  // namespace gainlens
