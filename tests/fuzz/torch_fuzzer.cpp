// Opens any bytes as a checkpoint of torch.save. The result is either tensors that can be read, or InvalidArgument.
#include "core/error.h"
#include "formats/torch_file.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const int file = ::memfd_create("input", MFD_CLOEXEC);
  if (file < 0 || ::ftruncate(file, 0) != 0 || ::pwrite(file, data, size, 0) != static_cast<ssize_t>(size))
    std::abort();
  try {
    const auto opened = gainlens::formats::TorchFile::open(fmt::format("/proc/self/fd/{}", file));
    const auto& content = opened.content();
    unsigned sum = 0;
    const auto state = content.value(content.root(), "state_dict");
    for (const auto& [name, entry] : opened.tensors(state.value_or(content.root()), "its content")) {
      for (const std::byte byte : entry.bytes) sum += std::to_integer<unsigned>(byte);
    }
    [[maybe_unused]] const volatile unsigned read = sum;  // keeps the reads
  } catch (const gainlens::InvalidArgument& error) {
    const std::string_view message = error.what();
    if (message.find('\n') != std::string_view::npos) std::abort();  // a message must be one line
  }
  return 0;
}
