#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::reports {

/// Runs a program, found on PATH, to its end with `folder` as its working folder. Nothing is read from standard input.
/// It has no file to write to: what it makes comes back through a pipe, so that the one who writes it sees whether the
/// disk took it.
/// @param arguments    program name first
/// @param environment  set over our own
/// @param install      what to install where the program is missing, e.g. "gnuplot"
/// @returns what it wrote to standard output
/// @throws RunFailed  it is not on PATH, cannot be started, ends with another exit code than 0 or by a signal (with the
///                    last lines of its standard error)
std::string run_program(const std::vector<std::string>& arguments, const std::filesystem::path& folder,
                        const std::map<std::string, std::string>& environment, std::string_view install);

}  // namespace gainlens::reports
