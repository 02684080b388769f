#include "formats/gzip.h"

#include "core/check.h"
#include "core/quantity.h"

#include <zlib.h>

#include <cerrno>
#include <memory>
#include <new>

namespace gainlens::formats {

std::string read_plain_or_gzip(const std::filesystem::path& path, std::uint64_t max_bytes) {
  const std::string where = printable(path.string());
  std::error_code error;
  const bool exists = std::filesystem::exists(path, error);
  CHECK(!error, "{}: cannot be read: {}", where, error.message());
  CHECK(exists, "{}: no such file", where);
  CHECK(std::filesystem::is_regular_file(path, error), "{}: not a regular file", where);
  // zlib passes a file without the magic bytes through unchanged.
  const std::unique_ptr<gzFile_s, decltype(&gzclose)> file(gzopen(path.c_str(), "rb"), &gzclose);
  if (file == nullptr && errno == ENOMEM) throw std::bad_alloc();
  CHECK(file != nullptr, "{}: cannot be opened for reading", where);
  constexpr unsigned block = 1u << 20;
  gzbuffer(file.get(), block);

  std::string content;
  for (;;) {
    const std::size_t used = content.size();
    content.resize(used + block);
    const int read = gzread(file.get(), content.data() + used, block);
    content.resize(used + static_cast<std::size_t>(read > 0 ? read : 0));
    // Only gzerror() shows a truncated stream: gzread() returns the bytes that exist and sets Z_BUF_ERROR.
    int code = Z_OK;
    const char* reason = gzerror(file.get(), &code);
    if (code == Z_MEM_ERROR) throw std::bad_alloc();
    CHECK(read >= 0 && (code == Z_OK || code == Z_STREAM_END),
          "{}: broken or truncated after {} unpacked bytes ({}); fetch the file again", where, content.size(),
          printable(reason));
    CHECK(content.size() <= max_bytes, "{}: larger than {} unpacked; give a smaller file", where,
          format_bytes(max_bytes));
    if (read == 0) return content;
  }
}

}  // namespace gainlens::formats
