// Opens any bytes as a GGUF vocabulary, a tokenizer.json or a SentencePiece model, according to the first bytes. The
// result is either a tokenizer whose ids lie in its vocabulary, or InvalidArgument.
#include "core/error.h"
#include "tokenizers/gguf_tokenizer.h"
#include "tokenizers/tokenizer.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace {

using namespace gainlens;

std::unique_ptr<tokenizers::Tokenizer> open_as_it_begins(std::string_view bytes, const std::string& path) {
  if (bytes.starts_with("GGUF")) return tokenizers::open_gguf_tokenizer(formats::GgufFile::open(path));
  if (bytes.starts_with("{")) return tokenizers::open_tokenizer_json(path);
  return tokenizers::open_sentencepiece(path);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const int file = ::memfd_create("input", MFD_CLOEXEC);
  if (file < 0 || ::ftruncate(file, 0) != 0 || ::pwrite(file, bytes, size, 0) != static_cast<ssize_t>(size))
    std::abort();
  try {
    const auto tokenizer =
        open_as_it_begins({reinterpret_cast<const char*>(bytes), size}, fmt::format("/proc/self/fd/{}", file));
    for (const std::string_view text : {"ab  <s>12 a\u0301\n\u4e2d", "aaaaaaaabbbbbbbb", ""}) {
      for (const tokenizers::TokenId id : tokenizer->encode(text)) {
        if (id < 0 || id >= tokenizer->vocabulary_size()) std::abort();
      }
    }
  } catch (const InvalidArgument& error) {
    const std::string_view message = error.what();
    if (message.find('\n') != std::string_view::npos) std::abort();  // a message must be one line
  }
  return 0;
}
