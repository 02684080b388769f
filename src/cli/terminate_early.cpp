// What gainlens-compute does before any of its libraries is initialised. Their initialisers may throw, so the handler
// of uncaught exceptions is set. And oneMKL, of libtorch, ends the process with a message of its own where the working
// folder was deleted, so the program ends first. Needs neither the libraries nor the C library to be initialised.
// Compiled without sanitizers.
#include "cli/program_start.h"

#include <limits.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace {

constexpr char deleted[] =
    "gainlens: error: the working folder was deleted; change to one that exists (cd) and run the command again\n";

void begin(int, char**, char**) {
  gainlens::cli::explain_uncaught_exceptions();
  std::array<char, PATH_MAX> folder;
  if (::syscall(SYS_getcwd, folder.data(), folder.size()) < 0 && errno == ENOENT) {
    [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, deleted, sizeof deleted - 1);
    ::_exit(2);
  }
}

using Initialiser = void (*)(int, char**, char**);
[[gnu::used, gnu::section(".preinit_array")]] const Initialiser initialiser = begin;

}  // namespace
