// Opens any bytes as a safetensors file. The result is either tensors that can be read, or InvalidArgument.
#include "core/error.h"
#include "formats/tensor_file.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const int file = ::memfd_create("input", MFD_CLOEXEC);
  if (file < 0 || ::ftruncate(file, 0) != 0 || ::pwrite(file, data, size, 0) != static_cast<ssize_t>(size))
    std::abort();
  try {
    const auto tensors = gainlens::formats::TensorFile::open(fmt::format("/proc/self/fd/{}", file));
    unsigned sum = 0;
    for (const auto& [name, entry] : tensors.entries()) {
      for (const std::byte byte : entry.bytes) sum += std::to_integer<unsigned>(byte);
    }
    [[maybe_unused]] const volatile unsigned read = sum;  // keeps the reads
  } catch (const gainlens::InvalidArgument& error) {
    const std::string_view message = error.what();
    if (message.find('\n') != std::string_view::npos) std::abort();  // a message must be one line
  }
  return 0;
}
