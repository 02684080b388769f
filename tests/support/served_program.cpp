#include "support/served_program.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

namespace gainlens::testing {

ServedProgram::ServedProgram(const std::vector<std::string>& words, const std::string& library,
                             const Variables& environment) {
  int requests[2], answers[2];
  if (::pipe2(requests, O_CLOEXEC) != 0 || ::pipe2(answers, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  child_ = ::fork();
  if (child_ < 0) throw std::runtime_error("cannot fork");
  if (child_ == 0) {
    ::setenv("LD_PRELOAD", library.c_str(), 1);
    ::setenv("GAINLENS_SERVE", "1", 1);
    for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
    if (::dup2(requests[0], 198) < 0 || ::dup2(answers[1], 199) < 0) ::_exit(126);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ::close(requests[0]);
  ::close(answers[1]);
  requests_ = requests[1];
  answers_ = ::fdopen(answers[0], "r");
}

ServedProgram::~ServedProgram() {
  ::close(requests_);
  std::fclose(answers_);
  ::waitpid(child_, nullptr, 0);
}

int ServedProgram::run(const std::vector<std::string>& request) {
  std::string bytes;
  for (const std::string& word : request) bytes.append(word.c_str(), word.size() + 1);
  const std::size_t size = bytes.size();
  bytes.insert(0, reinterpret_cast<const char*>(&size), sizeof size);
  int status = -1;
  if (::write(requests_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()) ||
      std::fscanf(answers_, "%d", &status) != 1)
    throw std::runtime_error("the program that is to be run has ended");
  return status;
}

}  // namespace gainlens::testing
