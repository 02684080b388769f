#include "cli/program_start.h"

#include "cli/application.h"
#include "core/error.h"
#include "core/file_descriptor.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <vector>

namespace gainlens::cli {
namespace {

/// The file of this program, without symbolic links.
std::filesystem::path own_file(const char* name) {
  // Without a base address of the loader, the loader itself was called with this program as its argument.
  if (::getauxval(AT_BASE) == 0) return std::filesystem::canonical(name);
  // Not the name: it may be one that the shell found in PATH.
  return std::filesystem::read_symlink("/proc/self/exe");
}

/// Refuses a program that does not belong to this one: part of a file, of another build, or this program itself, which
/// would start itself for ever.
void check_belongs_to_us(const std::filesystem::path& program) {
  const ProgramStamp own = own_stamp(), found = stamp_of(program);
  const std::string where = printable(program.string());
  if (found.program != "gainlens-compute")
    throw_run_failed(
        "{}: is the program {}, not gainlens-compute; gainlens needs it in its own folder, install both "
        "again",
        where, printable(found.program, 40));
  if (found.build != own.build)
    throw_run_failed("{}: is of another build ({}) than gainlens ({}); install both again", where,
                     printable(found.build, 60), printable(own.build, 60));
}

bool is_limited(__rlimit_resource resource) {
  rlimit limit{};
  return ::getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

/// Whether the loader of the C library can load a program and its libraries, tried in a process that runs no code of
/// theirs. True if that cannot be tried.
bool can_be_loaded(const std::filesystem::path& program) {
  std::string name = program.string(), trial = "LD_TRACE_LOADED_OBJECTS=1";
  std::string harmless = "--version";  // for a loader that does not know the variable
  std::vector<char*> arguments{name.data(), harmless.data(), nullptr}, variables;
  for (char** variable = environ; *variable != nullptr; ++variable) variables.push_back(*variable);
  variables.insert(variables.end(), {trial.data(), nullptr});
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO})
    ::posix_spawn_file_actions_addopen(&files, stream, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int failed = ::posix_spawn(&child, name.c_str(), &files, nullptr, arguments.data(), variables.data());
  ::posix_spawn_file_actions_destroy(&files);
  if (failed != 0) return true;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return true;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// libtorch maps half a gigabyte. Where that does not fit, the loader would end the process in its own way.
void check_fits(const std::filesystem::path& program) {
  if (!is_limited(RLIMIT_AS) && !is_limited(RLIMIT_DATA)) return;
  if (!can_be_loaded(program))
    throw_run_failed("{}: cannot be loaded within the limits of this process; raise them: ulimit -v, ulimit -d",
                     printable(program.string()));
}

}  // namespace

void become_compute_program(char* const* arguments) {
  check_working_folder();
  const auto program = own_file(arguments[0]).parent_path() / "gainlens-compute";
  check_belongs_to_us(program);
  check_fits(program);
  ::execv(program.c_str(), arguments);
  throw_run_failed("{}: cannot be started: {}; gainlens needs it in its own folder, install both again",
                   printable(program.string()), system_reason());
}

}  // namespace gainlens::cli
