// Opens any bytes as a GGUF file. The result is either metadata and tensors that can be read, or InvalidArgument.
#include "core/error.h"
#include "formats/dequantise.h"
#include "formats/gguf_file.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace {

using gainlens::formats::GgufFile;
using gainlens::formats::GgufMetadata;

/// Runs `read`. InvalidArgument with a message of one line is also accepted.
template <typename Read>
void allow_refusal(Read&& read) {
  try {
    read();
  } catch (const gainlens::InvalidArgument& error) {
    const std::string_view message = error.what();
    if (message.find('\n') != std::string_view::npos) std::abort();
  }
}

/// Reads every key as each of the kinds that a reader can ask for.
void read_metadata(const GgufMetadata& metadata) {
  for (const std::string& key : metadata.keys()) {
    allow_refusal([&] {
      metadata.integer(key, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max());
    });
    allow_refusal([&] { metadata.number(key); });
    allow_refusal([&] { metadata.boolean(key); });
    allow_refusal([&] { metadata.text(key); });
    allow_refusal([&] {
      unsigned sum = 0;
      const auto texts = metadata.texts(key);
      for (const std::string_view text : texts.value()) {
        for (const char c : text) sum += static_cast<unsigned char>(c);
      }
      [[maybe_unused]] const volatile unsigned read = sum;  // keeps the reads
    });
    allow_refusal([&] { metadata.integers(key); });
    allow_refusal([&] { metadata.numbers(key); });
    allow_refusal([&] { metadata.booleans(key); });
  }
}

void read_tensors(const GgufFile& file) {
  for (const auto& [name, entry] : file.entries()) {
    if (gainlens::formats::is_quantised(entry.dtype)) {
      const std::size_t blocks = entry.bytes.size() / bytes_per_block(entry.dtype);
      std::vector<float> values(blocks * elements_per_block(entry.dtype));
      gainlens::formats::dequantise(entry.dtype, entry.bytes, values);
    } else {
      unsigned sum = 0;
      for (const std::byte byte : entry.bytes) sum += std::to_integer<unsigned>(byte);
      [[maybe_unused]] const volatile unsigned read = sum;
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const int file = ::memfd_create("input", MFD_CLOEXEC);
  if (file < 0 || ::ftruncate(file, 0) != 0 || ::pwrite(file, data, size, 0) != static_cast<ssize_t>(size))
    std::abort();
  allow_refusal([] {
    const auto gguf = GgufFile::open(fmt::format("/proc/self/fd/{}", file));
    read_metadata(gguf.metadata());
    read_tensors(gguf);
  });
  return 0;
}
