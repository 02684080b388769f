#include "core/atomic_file.h"

#include "core/check.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <system_error>
#include <utility>

namespace gainlens {
namespace {

std::string shown(const std::filesystem::path& path) {
  return printable(path.string());
}

[[noreturn]] void throw_not_flushed(const std::string& path) {
  throw_run_failed("{}: cannot be flushed to disk: {}", path, system_reason());
}

[[noreturn]] void throw_not_written(const std::string& path) {
  throw_run_failed("{}: cannot be written: {}", path, system_reason());
}

FileDescriptor synced(const std::filesystem::path& path, int flags) {
  FileDescriptor file(::open(path.c_str(), flags | O_CLOEXEC));
  if (file.get() < 0 || ::fsync(file.get()) != 0) throw_not_flushed(shown(path));
  return file;
}

void rename_file(const std::filesystem::path& temporary, const std::filesystem::path& final_path) {
  if (::rename(temporary.c_str(), final_path.c_str()) != 0) {
    throw_run_failed("{}: cannot be renamed to {}: {}", shown(temporary), shown(final_path), system_reason());
  }
}

void sync_folder_of(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const FileDescriptor open(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (open.get() < 0) throw_not_flushed(shown(folder));
  if (::fsync(open.get()) == 0) return;
  // Some file systems (FUSE, network) flush files but not folders. There a crash may undo the rename; no file is torn.
  if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP) throw_not_flushed(shown(folder));
}

/// Makes a file in the folder and removes it. Returns false, with errno set, if that is not possible.
bool can_make_file(const std::filesystem::path& folder) {
  if (FileDescriptor(::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600)).get() >= 0) return true;
  // These three mean that the file system, or its kernel, has no files without a name.
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) return false;
  std::string name = (folder / ".writable.XXXXXX").string();
  const FileDescriptor file(::mkstemp(name.data()));
  if (file.get() < 0) return false;
  ::unlink(name.c_str());
  return true;
}

}  // namespace

bool may_work_later(int error_number) {
  constexpr std::array faults{ENOSPC, EDQUOT, EIO, ENOMEM, EMFILE, ENFILE};
  return std::ranges::find(faults, error_number) != faults.end();
}

void throw_cannot_be_made(const std::string& what) {
  const int code = errno;
  const std::string message = fmt::format("{}: {}", what, system_reason());
  if (may_work_later(code)) throw RunFailed(message);
  throw InvalidArgument(message);
}

OutputFile::OutputFile(const std::filesystem::path& path, std::string shown_path)
    : file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)), shown_(std::move(shown_path)) {
  if (file_.get() < 0) throw_cannot_be_made(shown_ + ": cannot be written");
}

void OutputFile::write(std::string_view bytes) {
  constexpr std::size_t max_buffered = std::size_t{1} << 16;
  if (buffer_.size() + bytes.size() > max_buffered) write_buffer();
  if (bytes.size() > max_buffered) {
    if (!write_all(file_, bytes)) throw_not_written(shown_);
  } else {
    buffer_ += bytes;
  }
}

void OutputFile::write_buffer() {
  if (!write_all(file_, buffer_)) throw_not_written(shown_);
  buffer_.clear();
}

void OutputFile::flush_and_close() {
  write_buffer();
  if (::fsync(file_.get()) != 0) throw_not_flushed(shown_);
  if (!file_.close()) throw_run_failed("{}: cannot be closed: {}", shown_, system_reason());
}

void write_file_atomically(const std::filesystem::path& path, const std::function<void(OutputFile&)>& fill) {
  TemporaryFile temporary(path);
  OutputFile file(temporary.path(), shown(path));
  fill(file);
  file.flush_and_close();
  temporary.publish();
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  write_file_atomically(path, [&](OutputFile& file) { file.write(content); });
}

void publish_file(const std::filesystem::path& temporary, const std::filesystem::path& final_path) {
  synced(temporary, O_RDONLY);
  rename_file(temporary, final_path);
  sync_folder_of(final_path);
}

void flush_to_disk(const std::filesystem::path& path) {
  const FileDescriptor file = synced(path, O_RDONLY);
  [[maybe_unused]] const int hint =
      ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);  // file systems in memory do not support it
}

TemporaryFile::TemporaryFile(const std::filesystem::path& final_path)
    : TemporaryFile(final_path, final_path.string() + ".tmp") {}
TemporaryFile::TemporaryFile(const std::filesystem::path& final_path, std::filesystem::path temporary)
    : final_path_(final_path), path_(std::move(temporary)) {
  ::unlink(path_.c_str());
}

TemporaryFile::~TemporaryFile() {
  if (!published_) ::unlink(path_.c_str());
}

void TemporaryFile::publish() {
  rename_file(path_, final_path_);
  published_ = true;
  sync_folder_of(final_path_);
}

void make_folder(const std::filesystem::path& folder) {
  if (::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) throw_cannot_be_made(shown(folder) + ": cannot be made");
}

void ensure_writable_folder(const std::filesystem::path& folder) {
  std::error_code error, status_error;
  std::filesystem::create_directories(folder, error);
  if (!std::filesystem::is_directory(folder, status_error)) {
    CHECK(error, "{}: cannot be used as an output folder: it exists and is not a folder", shown(folder));
    std::error_code no_link;
    const std::filesystem::path target = std::filesystem::read_symlink(folder, no_link);
    CHECK(no_link || error != std::errc::file_exists,
          "{}: cannot be used as an output folder: it is a link to {}, which is not there; make that folder, or remove "
          "the link",
          shown(folder), shown(target));
    errno = error.value();
    throw_cannot_be_made(shown(folder) + ": cannot be used as an output folder");
  }
  if (!can_make_file(folder)) throw_cannot_be_made(shown(folder) + ": cannot be written to");
}

}  // namespace gainlens
