#pragma once

namespace gainlens::cli {

/// The whole program: parses the command line, runs one subcommand, and prints every error as one line on stderr.
/// @returns the exit code: 0 done, 1 the run failed, 2 the request or the input was wrong, 141 the reader of standard
///     output has closed it
int run_application(int argc, const char* const* argv);

}  // namespace gainlens::cli
