#include "formats/gzip.h"

#include "core/available_memory.h"
#include "core/check.h"
#include "core/quantity.h"
#include "core/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>
#include <vector>

namespace gainlens::formats {
namespace {

constexpr unsigned block = 1u << 20;
/// From this size on, available memory is asked before a content is given more.
constexpr std::uint64_t never_too_large = std::uint64_t{64} << 20;

bool is_readable_once(const struct stat& status) {
  return S_ISREG(status.st_mode) || S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode);
}

/// @return a file descriptor, negative if it cannot be opened
int open_standard_input() {
  struct stat status {};
  CHECK(::fstat(STDIN_FILENO, &status) == 0 && is_readable_once(status),
        "standard input: neither a pipe nor a file; pipe a text into the program, or give the name of a file");
  return ::dup(STDIN_FILENO);
}

/// @return a file descriptor, negative if it cannot be opened
int open_file_or_pipe(const std::filesystem::path& path, const std::string& where) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    const int cause = errno;
    CHECK(cause != ENOENT && cause != ENOTDIR, "{}: no such file", where);
    throw_invalid("{}: cannot be read: {}", where, std::generic_category().message(cause));
  }
  CHECK(is_readable_once(status), "{}: not a regular file or a pipe", where);
  return ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
}

/// The string doubles its memory when it is full, and holds the old and the new one for a moment.
void check_there_is_memory(const std::string& content, const std::string& where) {
  if (content.size() + block <= content.capacity() || content.size() < never_too_large) return;
  const auto available = available_memory();
  CHECK(!available || *available / 2 >= content.size(),
        "{}: larger than {} unpacked, and {} of memory are available; give a smaller file", where,
        format_bytes(content.size()), format_bytes(*available));
}

}  // namespace

/// zlib's own reader of files drops what stands behind a member without a word, so members are followed here.
class UnpackedFile::Stream {
 public:
  /// @param file  owned from here on
  Stream(int file, const std::string& where) : file_(file), where_(where), input_(block) {
    while (filled_ < 2 && refill()) {
    }
    const unsigned char* const bytes = input_.data();
    if (filled_ < 2 || bytes[0] != 0x1f || bytes[1] != 0x8b) return;
    constexpr int gzip_with_largest_window = 16 + MAX_WBITS;
    const int code = inflateInit2(&unpacker_, gzip_with_largest_window);
    if (code == Z_MEM_ERROR) throw std::bad_alloc();
    CHECK(code == Z_OK, "{}: cannot be unpacked: zlib's code {}", where_, code);
    is_gzip_ = true;
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() {
    if (is_gzip_) inflateEnd(&unpacker_);
  }

  /// @param unpacked  bytes before these, for messages
  /// @return bytes written to `out`; 0 only at the end
  std::size_t read(char* out, std::size_t most, std::uint64_t unpacked) {
    if (is_gzip_) return unpack(out, most, unpacked);
    if (next_ == filled_ && !refill()) return 0;
    const std::size_t count = std::min(most, filled_ - next_);
    std::memcpy(out, input_.data() + next_, count);
    next_ += count;
    return count;
  }

 private:
  /// Closes the file.
  struct OpenFile {
    explicit OpenFile(int number) : descriptor(number) {}
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;
    ~OpenFile() { ::close(descriptor); }
    const int descriptor;
  };

  /// Reads more behind what is not used yet. @return whether there was more
  bool refill() {
    if (next_ == filled_) next_ = filled_ = 0;
    ssize_t count = 0;
    do count = ::read(file_.descriptor, input_.data() + filled_, input_.size() - filled_);
    while (count < 0 && errno == EINTR);
    CHECK(count >= 0, "{}: cannot be read: {}", where_, std::generic_category().message(errno));
    filled_ += static_cast<std::size_t>(count);
    return count > 0;
  }

  /// Zeros may stand behind the last member, as tapes have them, and nothing else but another member.
  /// @return whether another member begins
  bool another_member(std::uint64_t unpacked) {
    bool padded = false;
    while (next_ < filled_ || refill()) {
      if (input_[next_] != 0) {
        CHECK(!padded && input_[next_] == 0x1f,
              "{}: broken or truncated after {} unpacked bytes (what follows a gzip member is no other member); "
              "fetch the file "
              "again",
              where_, unpacked);
        inflateReset(&unpacker_);
        return true;
      }
      padded = true;
      ++next_;
    }
    return false;
  }

  std::size_t unpack(char* out, std::size_t most, std::uint64_t unpacked) {
    unpacker_.next_out = reinterpret_cast<unsigned char*>(out);
    unpacker_.avail_out = static_cast<unsigned>(most);
    const auto written = [&] { return most - unpacker_.avail_out; };
    while (written() == 0) {
      if (member_ended_) {
        if (!another_member(unpacked)) return 0;
        member_ended_ = false;
      }
      CHECK(next_ < filled_ || refill(), "{}: broken or truncated after {} unpacked bytes; fetch the file again",
            where_, unpacked);
      unpacker_.next_in = input_.data() + next_;
      unpacker_.avail_in = static_cast<unsigned>(filled_ - next_);
      const int code = inflate(&unpacker_, Z_NO_FLUSH);
      next_ = filled_ - unpacker_.avail_in;
      if (code == Z_MEM_ERROR) throw std::bad_alloc();
      CHECK(code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR,
            "{}: broken or truncated after {} unpacked bytes ({}); fetch the file again", where_, unpacked + written(),
            printable(unpacker_.msg == nullptr ? "no gzip" : unpacker_.msg));
      member_ended_ = code == Z_STREAM_END;
    }
    return written();
  }

  const OpenFile file_;
  const std::string where_;
  std::vector<unsigned char> input_;
  std::size_t next_ = 0, filled_ = 0;  ///< of input_: what was read and is not used yet
  bool is_gzip_ = false, member_ended_ = false;
  z_stream unpacker_{};
};

UnpackedFile::UnpackedFile(const std::filesystem::path& path, Accepts accepts) : where_(printable(path.string())) {
  const bool standard_input = accepts == Accepts::files_and_pipes && path == "-";
  if (standard_input) where_ = "standard input";
  const int file = standard_input              ? open_standard_input()
                   : accepts == Accepts::files ? open_regular_file(path).release()
                                               : open_file_or_pipe(path, where_);
  CHECK(file >= 0, "{}: cannot be opened for reading", where_);
  stream_ = std::make_unique<Stream>(file, where_);
}

UnpackedFile::UnpackedFile(UnpackedFile&&) noexcept = default;
UnpackedFile::~UnpackedFile() = default;

std::size_t UnpackedFile::append_to(std::string& content, std::size_t most) {
  const std::size_t used = content.size();
  const std::size_t wanted = std::min<std::size_t>(most, block);
  content.resize(used + wanted);
  const std::size_t taken = wanted == 0 ? 0 : stream_->read(content.data() + used, wanted, position_);
  content.resize(used + taken);
  position_ += taken;
  return taken;
}

std::string read_plain_or_gzip(const std::filesystem::path& path, std::uint64_t max_bytes,
                               UnpackedFile::Accepts accepts) {
  UnpackedFile file(path, accepts);
  std::string content;
  do {
    CHECK(content.size() <= max_bytes, "{}: larger than {} unpacked; give a smaller file", file.where(),
          format_bytes(max_bytes));
    check_there_is_memory(content, file.where());
  } while (file.append_to(content, block) > 0);
  return content;
}

}  // namespace gainlens::formats
