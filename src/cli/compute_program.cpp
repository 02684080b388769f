#include "cli/compute_program.h"

#include "core/error.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace gainlens::cli {
namespace {

/// The file of this program, without symbolic links.
std::filesystem::path own_file(const char* name) {
  // Without a base address of the loader, the loader itself was called with this program as its argument.
  if (::getauxval(AT_BASE) == 0) return std::filesystem::canonical(name);
  // Not the name: it may be one that the shell found in PATH.
  return std::filesystem::read_symlink("/proc/self/exe");
}

}  // namespace

void become_compute_program(char* const* arguments) {
  const auto program = own_file(arguments[0]).parent_path() / "gainlens-compute";
  ::execv(program.c_str(), arguments);
  throw_run_failed("{}: cannot be started: {}; gainlens needs it in its own folder, install both again",
                   printable(program.string()), std::generic_category().message(errno));
}

}  // namespace gainlens::cli
