#pragma once

#include <sys/types.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace gainlens::testing {

/// A program that has loaded its libraries, which takes longer than a short run, and that forks for each run
/// (served_main.h). It ends with this object.
class ServedProgram {
 public:
  using Variables = std::vector<std::pair<std::string, std::string>>;

  /// @param words        the program and its arguments
  /// @param library      to be preloaded
  /// @param environment  changes of the environment
  ServedProgram(const std::vector<std::string>& words, const std::string& library, const Variables& environment);
  ServedProgram(const ServedProgram&) = delete;
  ServedProgram& operator=(const ServedProgram&) = delete;
  ~ServedProgram();

  /// Lets the library make one run of these words, whose meaning is its own. Returns the wait status of the run.
  /// @throws std::runtime_error  the program has ended
  int run(const std::vector<std::string>& request);

 private:
  pid_t child_ = -1;
  int requests_ = -1;
  std::FILE* answers_ = nullptr;
};

}  // namespace gainlens::testing
