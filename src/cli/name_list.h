#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace gainlens::cli {

/// Adds an option that takes names separated by commas, such as `--arm plain,bft`. It may be given several times.
/// Unlike a CLI11 option with a delimiter, it does not drop empty names.
/// @param names  its default; replaced by what is given
/// @throws InvalidArgument  (when the command line is read) an empty name: "plain,"; a name twice
CLI::Option* add_name_list(CLI::App& command, const std::string& option, std::vector<std::string>& names,
                           const std::string& help);

/// The numbers of such an option.
/// @throws InvalidArgument  one is no finite number
std::vector<double> numbers_of(const std::vector<std::string>& texts, const std::string& option);

}  // namespace gainlens::cli
