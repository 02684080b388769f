#include "core/atomic_file.h"

#include "core/error.h"
#include "core/file_descriptor.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

namespace gainlens {
namespace {

std::string shown(const std::filesystem::path& path) {
  return printable(path.string());
}

void sync(const std::filesystem::path& path, int flags) {
  const FileDescriptor file(::open(path.c_str(), flags | O_CLOEXEC));
  if (file.get() < 0 || ::fsync(file.get()) != 0) throw_run_failed("{}: cannot be flushed to disk: {}", shown(path), system_reason());
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

}  // namespace

void publish_file(const std::filesystem::path& temporary, const std::filesystem::path& final_path) {
  sync(temporary, O_RDONLY);
  if (::rename(temporary.c_str(), final_path.c_str()) != 0) {
    throw_run_failed("{}: cannot be renamed to {}: {}", shown(temporary), shown(final_path), system_reason());
  }
  sync(folder_of(final_path), O_RDONLY | O_DIRECTORY);
}

TemporaryFile::TemporaryFile(const std::filesystem::path& final_path) : final_path_(final_path), path_(final_path.string() + ".tmp") {}

TemporaryFile::~TemporaryFile() {
  if (!published_) ::unlink(path_.c_str());
}

void TemporaryFile::publish() {
  publish_file(path_, final_path_);
  published_ = true;
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  TemporaryFile temporary(path);
  {
    const FileDescriptor file(::open(temporary.path().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    CHECK(file.get() >= 0, "{}: cannot be written: {}", shown(path), system_reason());
    while (!content.empty()) {
      const ssize_t written = ::write(file.get(), content.data(), content.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) throw_run_failed("{}: cannot be written: {}", shown(path), system_reason());
      content.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  temporary.publish();
}

void ensure_writable_folder(const std::filesystem::path& folder) {
  std::error_code error, status_error;
  std::filesystem::create_directories(folder, error);
  CHECK(std::filesystem::is_directory(folder, status_error), "{}: cannot be used as an output folder: {}", shown(folder),
        error ? error.message() : "it exists and is not a folder");
  std::string probe = (folder / ".writable.XXXXXX").string();
  const FileDescriptor file(::mkstemp(probe.data()));
  CHECK(file.get() >= 0, "{}: cannot be written to: {}", shown(folder), system_reason());
  ::unlink(probe.c_str());
}

}  // namespace gainlens
