#pragma once

#include <CLI/CLI.hpp>

namespace gainlens::cli {

/// Parses a command line. A value may not be empty, and the name of an option is not taken as the value of another one:
/// CLI11 would read `--out= --quiet` as an output folder called --quiet.
/// @throws CLI::Success     help or the version was asked for
/// @throws InvalidArgument  it cannot be parsed: one line with what was found, and the nearest option or subcommand
void parse_command_line(CLI::App& app, int argc, const char* const* argv);

}  // namespace gainlens::cli
