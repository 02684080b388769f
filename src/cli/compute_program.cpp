#include "cli/compute_program.h"

#include "core/error.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace gainlens::cli {

void become_compute_program(char* const* arguments) {
  // Not argv[0]: it may be a name that the shell found in PATH, or that of a symbolic link.
  const auto program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "gainlens-compute";
  ::execv(program.c_str(), arguments);
  throw_run_failed("{}: cannot be started: {}; gainlens needs it in its own folder, install both again",
                   printable(program.string()), std::generic_category().message(errno));
}

}  // namespace gainlens::cli
