#include "core/console.h"

#include "core/file_descriptor.h"
#include "core/terminal_text.h"

#include <cerrno>
#include <cstdio>
#include <new>
#include <string>

namespace gainlens {
namespace {

[[noreturn]] void throw_not_shown() {
  if (errno == EPIPE) throw ReaderGone("standard output: nobody reads it any more");
  throw_run_failed("standard output: cannot be written: {}", system_reason());
}

}  // namespace

void write_notice(std::string_view text) noexcept {
  try {
    write_control(terminal_text(text));
  } catch (const std::bad_alloc&) {
    write_control("gainlens: a message was lost: no memory\n");
  }
}

void write_control(std::string_view sequence) noexcept {
  std::fwrite(sequence.data(), 1, sequence.size(), stderr);
  std::fflush(stderr);
}

void write_result(std::string_view text) {
  const std::string shown = terminal_text(text);
  if (std::fwrite(shown.data(), 1, shown.size(), stdout) != shown.size()) throw_not_shown();
}

void flush_results() {
  if (std::fflush(stdout) != 0) throw_not_shown();
}

}  // namespace gainlens
