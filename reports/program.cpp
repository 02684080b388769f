#include "reports/program.h"

#include "core/error.h"
#include "core/json.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <system_error>

namespace gainlens::reports {
namespace {

constexpr std::size_t shown_errors = 600;  // bytes from the end of standard error

std::string reason(int code) {
  return std::generic_category().message(code);
}

/// argv or envp: pointers into strings that outlive it, ended by a null pointer.
std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
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

/// What the child does with its files before it runs the program.
class FileActions {
 public:
  FileActions(const std::filesystem::path& folder, const std::filesystem::path& errors) {
    int failed = posix_spawn_file_actions_init(&actions_);
    failed |= posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    failed |= posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    failed |= posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    failed |= posix_spawn_file_actions_addchdir_np(&actions_, folder.c_str());
    if (failed != 0) throw_run_failed("a child process cannot be prepared: {}", reason(failed));
  }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

int wait_for(pid_t child, const std::string& program) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw_run_failed("{}: cannot be waited for: {}", program, reason(errno));
  }
  return status;
}

}  // namespace

void run_program(const std::vector<std::string>& arguments, const std::filesystem::path& folder,
                 const std::map<std::string, std::string>& environment, std::string_view install) {
  const std::string& program = arguments.at(0);
  // absolute, since the child opens it before or after it changes folder
  const std::filesystem::path errors = std::filesystem::absolute(folder) / "stderr.txt";
  std::vector<std::string> words = arguments, variables = environment_with(environment);
  const FileActions actions(std::filesystem::absolute(folder), errors);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, program.c_str(), actions.get(), nullptr, pointers(words).data(), pointers(variables).data());
  if (failed == ENOENT) throw_run_failed("{}: not found on PATH; install {}", program, install);
  if (failed != 0) throw_run_failed("{}: cannot be started: {}", program, reason(failed));

  const int status = wait_for(child, program);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  const std::string written = read_text_file(errors);
  const std::string tail = written.size() > shown_errors ? written.substr(written.size() - shown_errors) : written;
  const std::string ending =
      WIFEXITED(status) ? fmt::format("exit code {}", WEXITSTATUS(status)) : fmt::format("signal {}", WTERMSIG(status));
  throw_run_failed("{}: ended with {}: {}", program, ending, printable(tail, shown_errors));
}

}  // namespace gainlens::reports
