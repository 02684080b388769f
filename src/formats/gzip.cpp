#include "formats/gzip.h"

#include "core/available_memory.h"
#include "core/check.h"
#include "core/quantity.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <new>
#include <system_error>

namespace gainlens::formats {
namespace {

constexpr unsigned block = 1u << 20;
/// From this size on, available memory is asked before a content is given more.
constexpr std::uint64_t never_too_large = std::uint64_t{64} << 20;

using Handle = std::unique_ptr<gzFile_s, decltype(&gzclose)>;

bool is_readable_once(const struct stat& status) {
  return S_ISREG(status.st_mode) || S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode);
}

Handle open_standard_input() {
  struct stat status {};
  CHECK(::fstat(STDIN_FILENO, &status) == 0 && is_readable_once(status),
        "standard input: neither a pipe nor a file; pipe a text into the program, or give the name of a file");
  // zlib closes what it is given.
  const int copy = ::dup(STDIN_FILENO);
  return {copy < 0 ? nullptr : gzdopen(copy, "rb"), &gzclose};
}

Handle open_path(const std::filesystem::path& path, UnpackedFile::Accepts accepts, const std::string& where) {
  const bool pipes = accepts == UnpackedFile::Accepts::files_and_pipes;
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    const int cause = errno;
    CHECK(cause != ENOENT && cause != ENOTDIR, "{}: no such file", where);
    throw_invalid("{}: cannot be read: {}", where, std::generic_category().message(cause));
  }
  CHECK(S_ISREG(status.st_mode) || (pipes && is_readable_once(status)), "{}: not a regular file{}", where,
        pipes ? " or a pipe" : "");
  Handle handle(gzopen(path.c_str(), "rb"), &gzclose);
  if (handle == nullptr && errno == ENOMEM) throw std::bad_alloc();
  return handle;
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

struct UnpackedFile::Stream {
  Handle handle;
};

UnpackedFile::UnpackedFile(const std::filesystem::path& path, Accepts accepts) : where_(printable(path.string())) {
  const bool standard_input = accepts == Accepts::files_and_pipes && path == "-";
  if (standard_input) where_ = "standard input";
  // zlib passes a file without the magic bytes through unchanged.
  Handle handle = standard_input ? open_standard_input() : open_path(path, accepts, where_);
  CHECK(handle != nullptr, "{}: cannot be opened for reading", where_);
  gzbuffer(handle.get(), block);
  stream_ = std::make_unique<Stream>(Stream{std::move(handle)});
}

UnpackedFile::UnpackedFile(UnpackedFile&&) noexcept = default;
UnpackedFile::~UnpackedFile() = default;

std::size_t UnpackedFile::append_to(std::string& content, std::size_t most) {
  const std::size_t used = content.size();
  const auto wanted = static_cast<unsigned>(std::min<std::size_t>(most, block));
  content.resize(used + wanted);
  const int read = gzread(stream_->handle.get(), content.data() + used, wanted);
  const std::size_t taken = read > 0 ? static_cast<std::size_t>(read) : 0;
  content.resize(used + taken);
  position_ += taken;
  // Only gzerror() shows a truncated stream: gzread() returns the bytes that exist and sets Z_BUF_ERROR.
  int code = Z_OK;
  const char* reason = gzerror(stream_->handle.get(), &code);
  if (code == Z_MEM_ERROR) throw std::bad_alloc();
  CHECK(read >= 0 && (code == Z_OK || code == Z_STREAM_END),
        "{}: broken or truncated after {} unpacked bytes ({}); fetch the file again", where_, position_,
        printable(reason));
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
