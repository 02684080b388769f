#pragma once

#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace gainlens {

/// Owns a POSIX file descriptor. A negative descriptor means that opening failed; errno says why.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  /// Hands the descriptor over: the caller closes it.
  int release() { return std::exchange(fd_, -1); }
  /// Closes a file that was written. Returns false, with errno set, if the system reports only now that data was lost.
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

/// Writes all bytes, in as many system calls as it takes. Returns false, with errno set, if only a part could be
/// written.
inline bool write_all(const FileDescriptor& file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

/// Why the last system call failed.
inline std::string system_reason() {
  return std::generic_category().message(errno);
}

}  // namespace gainlens
