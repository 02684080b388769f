#include "core/atomic_file.h"

#include "core/error.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

namespace gainlens {
namespace {

/// Owns a POSIX file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

std::string reason() { return std::generic_category().message(errno); }

void sync(const std::filesystem::path& path, int flags) {
  const Descriptor file(::open(path.c_str(), flags | O_CLOEXEC));
  if (file.get() < 0 || ::fsync(file.get()) != 0) throw_run_failed("{}: cannot be flushed to disk: {}", path.string(), reason());
}

std::filesystem::path folder_of(const std::filesystem::path& path) { return path.has_parent_path() ? path.parent_path() : "."; }

}  // namespace

void publish_file(const std::filesystem::path& temporary, const std::filesystem::path& final_path) {
  sync(temporary, O_RDONLY);
  if (::rename(temporary.c_str(), final_path.c_str()) != 0) {
    throw_run_failed("{}: cannot be renamed to {}: {}", temporary.string(), final_path.string(), reason());
  }
  sync(folder_of(final_path), O_RDONLY | O_DIRECTORY);
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  const std::filesystem::path temporary = path.string() + ".tmp";
  {
    const Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    CHECK(file.get() >= 0, "{}: cannot be written: {}", path.string(), reason());
    while (!content.empty()) {
      const ssize_t written = ::write(file.get(), content.data(), content.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) {
        const std::string why = reason();
        ::unlink(temporary.c_str());
        throw_run_failed("{}: cannot be written: {}", path.string(), why);
      }
      content.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  publish_file(temporary, path);
}

void ensure_writable_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  CHECK(std::filesystem::is_directory(folder), "{}: cannot be used as an output folder: {}", folder.string(),
        error ? error.message() : "it exists and is not a folder");
  std::string probe = (folder / ".writable.XXXXXX").string();
  const Descriptor file(::mkstemp(probe.data()));
  CHECK(file.get() >= 0, "{}: cannot be written to: {}", folder.string(), reason());
  ::unlink(probe.c_str());
}

}  // namespace gainlens
