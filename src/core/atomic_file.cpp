#include "core/atomic_file.h"

#include "core/check.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

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
  synced(path.has_parent_path() ? path.parent_path() : ".", O_RDONLY | O_DIRECTORY);
}

}  // namespace

void throw_cannot_be_made(const std::string& what) {
  const int code = errno;
  const std::string message = fmt::format("{}: {}", what, system_reason());
  for (const int fault : {ENOSPC, EDQUOT, EIO, ENOMEM, EMFILE, ENFILE}) {
    if (code == fault) throw RunFailed(message);
  }
  throw InvalidArgument(message);
}

OutputFile::OutputFile(const std::filesystem::path& path, std::string shown_path)
    : file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)), shown_(std::move(shown_path)) {
  if (file_.get() < 0) throw_cannot_be_made(shown_ + ": cannot be written");
}

void OutputFile::write(std::string_view bytes) {
  constexpr std::size_t most_buffered = std::size_t{1} << 16;
  if (buffer_.size() + bytes.size() > most_buffered) write_buffer();
  if (bytes.size() > most_buffered) {
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
    : final_path_(final_path), path_(std::move(temporary)) {}

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
    errno = error.value();
    throw_cannot_be_made(shown(folder) + ": cannot be used as an output folder");
  }
  std::string probe = (folder / ".writable.XXXXXX").string();
  const FileDescriptor file(::mkstemp(probe.data()));
  if (file.get() < 0) throw_cannot_be_made(shown(folder) + ": cannot be written to");
  ::unlink(probe.c_str());
}

}  // namespace gainlens
