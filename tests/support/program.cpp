#include "support/program.h"

#include "support/served_program.h"
#include "support/shared_data.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <memory>
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

/// The cache of the person who runs the tests is not touched: each test program has its own.
const std::string& own_cache() {
  static const TemporaryFolder cache;
  static const std::string path = cache.path();
  return path;
}

/// Forks and executes; the child's working folder, stdout and stderr are set first.
int start(const std::vector<std::string>& words, const std::string& folder, const std::string& out,
          const std::string& error) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const std::string& cache = own_cache();
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child == 0) {
    if (!folder.empty() && ::chdir(folder.c_str()) != 0) ::_exit(126);
    ::setenv("XDG_CACHE_HOME", cache.c_str(), 1);
    redirect(STDOUT_FILENO, out);
    redirect(STDERR_FILENO, error);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  return child;
}

/// @param waits  runs the words with these files as stdout and stderr, and returns the wait status
template <typename Run>
ProgramResult run(const Run& waits) {
  const TemporaryFolder logs;
  const std::string out = logs.path() / "out", error = logs.path() / "error";
  const int status = waits(out, error);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, content(out), content(error)};
}

ProgramResult run(const std::vector<std::string>& words, const std::string& folder) {
  return run([&](const std::string& out, const std::string& error) {
    int status = 0;
    ::waitpid(start(words, folder, out, error), &status, 0);
    return status;
  });
}

std::vector<std::string> with_program(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {GAINLENS_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

#ifdef GAINLENS_MANY_RUNS
/// Whether the program would only execute gainlens-compute.
bool is_computed(const std::vector<std::string>& arguments) {
  return !arguments.empty() && !arguments[0].starts_with("-") && arguments[0] != "inspect";
}

/// Runs gainlens-compute, loaded once for all runs: loading libtorch takes longer than most runs.
ProgramResult run_served(const std::vector<std::string>& arguments) {
  static ServedProgram program({GAINLENS_PROGRAM "-compute"}, GAINLENS_MANY_RUNS, {{"XDG_CACHE_HOME", own_cache()}});
  return run([&](const std::string& out, const std::string& error) {
    std::vector<std::string> request = {std::filesystem::current_path(), out, error};
    for (const std::string& word : with_program(arguments)) request.push_back(word);
    return program.run(request);
  });
}
#endif

}  // namespace

ProgramResult run_gainlens(const std::vector<std::string>& arguments) {
#ifdef GAINLENS_MANY_RUNS
  // The first run of each test program is the whole way of a user's call. Only a second one pays for loading once.
  static int computed = 0;
  if (is_computed(arguments) && ++computed > 1) return run_served(arguments);
#endif
  return run(with_program(arguments), "");
}

int start_gainlens(const std::vector<std::string>& arguments) {
  return start(with_program(arguments), "", "/dev/null", "/dev/null");
}

ProgramResult run_shell(const std::string& line, const std::string& folder) {
  return run({"bash", "-euo", "pipefail", "-c", line}, folder);
}

}  // namespace gainlens::testing
