#pragma once

#include "cli/application_parts.h"

namespace gainlens::cli {

/// Gives a new application all subcommands with their options.
/// @param global  gets the options when the command line is parsed; outlives the application, as does `action`
/// @param action  is set when a subcommand has been parsed
void describe_subcommands(CLI::App& app, GlobalOptions& global, Action& action);

/// The program with every subcommand: parses the command line, runs one subcommand, and prints every error as one line
/// on stderr.
/// @returns as exit_code_of()
int run_application(int argc, const char* const* argv);

}  // namespace gainlens::cli
