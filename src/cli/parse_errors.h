#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace gainlens::cli {

/// One line that explains why a command line could not be parsed: what was found, and the nearest option or subcommand.
/// @param app        the application after the parse that failed
/// @param arguments  the words after the program's name
std::string explain_parse_error(const CLI::App& app, const CLI::ParseError& error,
                                const std::vector<std::string>& arguments);

}  // namespace gainlens::cli
