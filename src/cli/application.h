#pragma once

namespace gainlens::cli {

/// The program with every subcommand: parses the command line, runs one subcommand, and prints every error as one line
/// on stderr.
/// @returns as exit_code_of()
int run_application(int argc, const char* const* argv);

}  // namespace gainlens::cli
