#pragma once

#include <string>
#include <vector>

namespace gainlens::testing {

/// What a finished process left behind.
struct ProgramResult {
  int exit_code = -1;  ///< -1 where a signal ended it
  std::string out;
  std::string error;
};

/// Runs the built gainlens program (GAINLENS_PROGRAM) with these arguments and waits for it.
ProgramResult run_gainlens(const std::vector<std::string>& arguments);

/// Starts it without waiting, output to /dev/null; returns its process id.
int start_gainlens(const std::vector<std::string>& arguments);

/// Runs a line of shell in `folder`, stdout and stderr kept.
ProgramResult run_shell(const std::string& line, const std::string& folder);

}  // namespace gainlens::testing
