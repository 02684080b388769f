#include "cli/program_start.h"

#include <unistd.h>

#include <array>
#include <cstddef>
#include <exception>
#include <new>
#include <string_view>

namespace gainlens::cli {
namespace {

void write_out(std::string_view text) {
  [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, text.data(), text.size());
}

/// The first line of a text, in plain ASCII, on a line of its own. Takes no memory from the heap.
void write_line(std::string_view before, std::string_view text) {
  std::array<char, 400> line;
  std::size_t size = 0;
  for (const std::string_view part : {before, text.substr(0, text.find('\n'))}) {
    for (const char c : part) {
      if (size + 1 < line.size()) line[size++] = c >= ' ' && c <= '~' ? c : '?';
    }
  }
  line[size++] = '\n';
  write_out({line.data(), size});
}

[[noreturn]] void end_program() {
  try {
    if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
    write_line("gainlens: internal error, please report it: ", "terminated without an exception");
  } catch (const std::bad_alloc&) {
    write_line("gainlens: error: ", "out of memory; free some, or raise the limits (ulimit -v, ulimit -d)");
  } catch (const std::exception& error) {
    write_line("gainlens: error: ", error.what());
  } catch (...) {
    write_line("gainlens: internal error, please report it: ", "an exception of an unknown kind");
  }
  ::_exit(1);
}

}  // namespace

void explain_uncaught_exceptions() {
  std::set_terminate(end_program);
}

}  // namespace gainlens::cli
