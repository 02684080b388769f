#pragma once

#include <string>
#include <vector>

namespace gainlens::testing {

/// The result of a finished process.
struct ProgramResult {
  int exit_code = -1;  ///< -1 if a signal ended the process
  std::string out;
  std::string error;
};

/// Runs the built gainlens program (GAINLENS_PROGRAM) with these arguments and waits for it. From the second run of a
/// test program on, gainlens-compute is loaded only once if the target defines GAINLENS_MANY_RUNS (served_main.h).
/// Calls of several threads must not overlap.
ProgramResult run_gainlens(const std::vector<std::string>& arguments);

/// Starts the program without waiting, with its output to /dev/null; returns its process id.
int start_gainlens(const std::vector<std::string>& arguments);

/// The built program for a line of a shell. The folder of a build may have blanks in its name.
#define QUOTED_PROGRAM "'" GAINLENS_PROGRAM "'"

/// A path for a line of a shell.
inline std::string shell_word(const std::string& path) {
  return "'" + path + "'";
}

/// Runs a shell command in `folder` and keeps its stdout and stderr.
ProgramResult run_shell(const std::string& line, const std::string& folder);

}  // namespace gainlens::testing
