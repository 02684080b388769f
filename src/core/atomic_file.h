#pragma once

#include "core/file_descriptor.h"

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace gainlens {

/// A file that is being written. write_file_atomically() makes it, flushes it and closes it, and checks each step.
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

/// Writes a file completely or not at all. A reader sees the old file or the new one, never a part, also after a crash
/// at any moment. Steps: write `path`.tmp, fsync, close, rename, fsync of the folder. If a step before the rename
/// fails, nothing of the new file is left.
/// @throws RunFailed        the disk is full, or a write, a flush or the closing fails
/// @throws InvalidArgument  the folder does not exist or is not writable
void write_file_atomically(const std::filesystem::path& path, std::string_view content);
/// The same for content too large to hold in one string.
void write_file_atomically(const std::filesystem::path& path, const std::function<void(OutputFile&)>& fill);

/// Flushes a written file to disk (fsync), renames it to `final_path` and flushes the folder.
/// @throws RunFailed  one of them fails
void publish_file(const std::filesystem::path& temporary, const std::filesystem::path& final_path);

/// Flushes a written file to disk (fsync) and asks the system to drop its pages from memory. The next reader then reads
/// what the disk holds.
/// @throws RunFailed  the flush fails
void flush_to_disk(const std::filesystem::path& path);

/// A temporary file for a library to write: `final_path`.tmp, or another name in the same folder. Write it, close it,
/// call flush_to_disk(), then publish(). Without publish() the destructor removes it. What lies under its name is
/// removed first: it was left by a killed process, or it is a link, through which another file would be overwritten.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& final_path);
  TemporaryFile(const std::filesystem::path& final_path, std::filesystem::path temporary);
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();

  const std::filesystem::path& path() const { return path_; }
  /// Renames the flushed file to the final path and flushes the folder (fsync).
  /// @throws RunFailed  one of them fails
  void publish();

 private:
  std::filesystem::path final_path_;
  std::filesystem::path path_;
  bool published_ = false;
};

/// Whether a system error lies with the machine (no room, too many open files, a broken disk) and not with the place:
/// the same request may work later.
bool may_work_later(int error_number);

/// Throws for a file or folder that could not be made. The reason comes from errno.
/// @param what  "<path>: cannot be written"
/// @throws RunFailed        may_work_later()
/// @throws InvalidArgument  anything else: the place is wrong
[[noreturn]] void throw_cannot_be_made(const std::string& what);

/// Makes one folder; its parent must exist. Does nothing if the name exists already.
/// @throws RunFailed, InvalidArgument  as throw_cannot_be_made
void make_folder(const std::filesystem::path& folder);

/// Creates the folder and its parents where they are missing, and proves that a file can be made in it. The proof has
/// no name where the file system can do that (O_TMPFILE), so that a kill leaves nothing behind.
/// @throws InvalidArgument  it exists as something else, is a link to nothing, cannot be created or cannot be written
/// to
/// @throws RunFailed        there is no room in it
void ensure_writable_folder(const std::filesystem::path& folder);

}  // namespace gainlens
