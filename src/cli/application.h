#pragma once

namespace gainlens::cli {

/// The whole program: parses, runs one subcommand, turns every error into one line on stderr.
/// @returns the exit code: 0 done, 1 the run failed, 2 the request or input was wrong, 141 nobody reads standard output
///     any more
int run_application(int argc, const char* const* argv);

}  // namespace gainlens::cli
