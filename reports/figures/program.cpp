#include "reports/figures/program.h"

#include "core/environment.h"
#include "core/error.h"
#include "core/file_descriptor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <sstream>
#include <system_error>
#include <utility>

namespace gainlens::reports {
namespace {

constexpr std::size_t shown_errors = 600;  // bytes from the end of standard error

std::string reason(int code) {
  return std::generic_category().message(code);
}

/// argv or envp: pointers into strings that outlive it, ended by a null pointer.
std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (std::string& string : strings) result.push_back(string.data());
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> environment_with(const std::map<std::string, std::string>& changes) {
  std::vector<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string variable = *entry;
    if (!changes.contains(variable.substr(0, variable.find('=')))) variables.push_back(variable);
  }
  for (const auto& [name, value] : changes) variables.push_back(fmt::format("{}={}", name, value));
  return variables;
}

/// One stream of the child: it writes, we read.
struct Pipe {
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw_run_failed("a child process cannot be prepared: {}", system_reason());
    reading = FileDescriptor(ends[0]);
    writing = FileDescriptor(ends[1]);
  }
  FileDescriptor reading{-1}, writing{-1};
};

/// What the child does with its files and signals before it runs the program.
class Preparations {
 public:
  Preparations(const std::filesystem::path& folder, const Pipe& out, const Pipe& errors) {
    sigset_t own_ways;
    sigemptyset(&own_ways);
    sigaddset(&own_ways, SIGPIPE);  // we ignore it, which children would inherit
    int failed = posix_spawn_file_actions_init(&files_);
    failed |= posix_spawnattr_init(&attributes_);
    failed |= posix_spawnattr_setsigdefault(&attributes_, &own_ways);
    failed |= posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF);
    failed |= posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    failed |= posix_spawn_file_actions_adddup2(&files_, out.writing.get(), STDOUT_FILENO);
    failed |= posix_spawn_file_actions_adddup2(&files_, errors.writing.get(), STDERR_FILENO);
    failed |= posix_spawn_file_actions_addchdir_np(&files_, folder.c_str());
    if (failed != 0) throw_run_failed("a child process cannot be prepared: {}", reason(failed));
  }
  Preparations(const Preparations&) = delete;
  Preparations& operator=(const Preparations&) = delete;
  ~Preparations() {
    posix_spawn_file_actions_destroy(&files_);
    posix_spawnattr_destroy(&attributes_);
  }
  const posix_spawn_file_actions_t* files() const { return &files_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
};

/// Takes what is there. False at the end of the stream.
bool take(const FileDescriptor& stream, std::string& text) {
  std::array<char, 1 << 16> buffer;
  const ssize_t size = ::read(stream.get(), buffer.data(), buffer.size());
  if (size < 0 && errno == EINTR) return true;
  if (size < 0) throw_run_failed("a child process cannot be read from: {}", system_reason());
  text.append(buffer.data(), static_cast<std::size_t>(size));
  return size > 0;
}

struct Written {
  std::string out, errors;
};

/// Both streams to their ends, side by side: a child that fills one of them waits for us.
Written read_all(Pipe& out, Pipe& errors) {
  out.writing = FileDescriptor(-1);  // else there is no end
  errors.writing = FileDescriptor(-1);
  Written written;
  std::array<pollfd, 2> streams = {pollfd{out.reading.get(), POLLIN, 0}, pollfd{errors.reading.get(), POLLIN, 0}};
  while (streams[0].fd >= 0 || streams[1].fd >= 0) {
    if (::poll(streams.data(), streams.size(), -1) < 0 && errno != EINTR) {
      throw_run_failed("a child process cannot be read from: {}", system_reason());
    }
    if (streams[0].fd >= 0 && streams[0].revents != 0 && !take(out.reading, written.out)) streams[0].fd = -1;
    if (streams[1].fd >= 0 && streams[1].revents != 0 && !take(errors.reading, written.errors)) streams[1].fd = -1;
  }
  return written;
}

int wait_for(pid_t child, const std::string& program) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw_run_failed("{}: cannot be waited for: {}", program, reason(errno));
  }
  return status;
}

/// Whether a program of this name lies in no folder of PATH that we may read. posix_spawnp says "permission denied" for
/// such a program where PATH also names a folder that we may not read.
bool is_missing(const std::string& program) {
  if (program.find('/') != std::string::npos) return false;
  std::istringstream folders(process_environment()("PATH").value_or(""));
  for (std::string folder; std::getline(folders, folder, ':');)
    if (::access((std::filesystem::path(folder) / program).c_str(), F_OK) == 0) return false;
  return true;
}

}  // namespace

std::string run_program(const std::vector<std::string>& arguments, const std::filesystem::path& folder,
                        const std::map<std::string, std::string>& environment, std::string_view install) {
  const std::string& program = arguments.at(0);
  std::vector<std::string> words = arguments, variables = environment_with(environment);
  Pipe out, errors;
  const Preparations child_begins(std::filesystem::absolute(folder), out, errors);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, program.c_str(), child_begins.files(), child_begins.attributes(),
                                    pointers(words).data(), pointers(variables).data());
  if (failed == ENOENT || (failed == EACCES && is_missing(program)))
    throw_run_failed("{}: not found on PATH; install {}", program, install);
  if (failed != 0) throw_run_failed("{}: cannot be started: {}", program, reason(failed));

  Written written = read_all(out, errors);
  const int status = wait_for(child, program);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return std::move(written.out);
  const std::string& text = written.errors;
  const std::string tail = text.size() > shown_errors ? text.substr(text.size() - shown_errors) : text;
  const std::string ending =
      WIFEXITED(status) ? fmt::format("exit code {}", WEXITSTATUS(status)) : fmt::format("signal {}", WTERMSIG(status));
  throw_run_failed("{}: ended with {}: {}", program, ending, printable(tail, shown_errors));
}

}  // namespace gainlens::reports
