#include "core/console.h"

#include "core/file_descriptor.h"

#include <cerrno>
#include <cstdio>

namespace gainlens {
namespace {

[[noreturn]] void throw_not_shown() {
  if (errno == EPIPE) throw ReaderGone("standard output: nobody reads it any more");
  throw_run_failed("standard output: cannot be written: {}", system_reason());
}

}  // namespace

void write_notice(std::string_view text) noexcept {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void write_result(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) throw_not_shown();
}

void flush_results() {
  if (std::fflush(stdout) != 0) throw_not_shown();
}

}  // namespace gainlens
