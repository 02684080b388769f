#pragma once

#include "cli/application_parts.h"

#include <functional>

namespace gainlens::cli {

/// Does what describe_subcommands() of cli/application.h does, but only `inspect` has its options.
/// @param compute  see below
void describe_reading_subcommands(CLI::App& app, GlobalOptions& global, Action& action,
                                  const std::function<void()>& compute);

/// The program `gainlens`. It answers `inspect` and help without libtorch, which takes a quarter of a second to load.
/// Everything else, and every command line that it does not understand, is left to the program with every subcommand.
/// If that one cannot be started, this one still tells its version, and what is wrong with a command line that names no
/// subcommand.
/// @param compute  hands over to that program; does not return. Throws RunFailed if it cannot be started
/// @returns as exit_code_of()
int run_reading_application(int argc, const char* const* argv, const std::function<void()>& compute);

}  // namespace gainlens::cli
