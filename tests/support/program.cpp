#include "support/program.h"

#include "support/shared_data.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace gainlens::testing {
namespace {

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

void redirect(int stream, const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file < 0 || ::dup2(file, stream) < 0) ::_exit(126);
}

/// Forks and executes; the child's working folder, stdout and stderr are set first. The cache of the person who runs
/// the tests is not touched: each test program has its own.
int start(const std::vector<std::string>& words, const std::string& folder, const std::string& out,
          const std::string& error) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  static const TemporaryFolder cache;
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child == 0) {
    if (!folder.empty() && ::chdir(folder.c_str()) != 0) ::_exit(126);
    ::setenv("XDG_CACHE_HOME", cache.path().c_str(), 1);
    redirect(STDOUT_FILENO, out);
    redirect(STDERR_FILENO, error);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  return child;
}

ProgramResult run(const std::vector<std::string>& words, const std::string& folder) {
  const TemporaryFolder logs;
  const std::string out = logs.path() / "out", error = logs.path() / "error";
  int status = 0;
  ::waitpid(start(words, folder, out, error), &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, content(out), content(error)};
}

std::vector<std::string> with_program(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {GAINLENS_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

}  // namespace

ProgramResult run_gainlens(const std::vector<std::string>& arguments) {
  return run(with_program(arguments), "");
}

int start_gainlens(const std::vector<std::string>& arguments) {
  return start(with_program(arguments), "", "/dev/null", "/dev/null");
}

ProgramResult run_shell(const std::string& line, const std::string& folder) {
  return run({"bash", "-euo", "pipefail", "-c", line}, folder);
}

}  // namespace gainlens::testing
