#pragma once

#include <CLI/CLI.hpp>

#include <span>
#include <string_view>

namespace gainlens::cli {

/// An option of a command that reads things of several kinds.
struct OptionFor {
  std::string_view name;    ///< "--at"
  std::string_view takers;  ///< of what it is an option: "sweeps"
};

/// Refuses the options that were given and that a thing does not take.
/// @param taken  the names of those that it takes
/// @param end    of the message, behind "--at: is for sweeps"
/// @throws InvalidArgument  there is one
void refuse_options(const CLI::App& command, std::span<const OptionFor> options,
                    std::span<const std::string_view> taken, std::string_view end);

}  // namespace gainlens::cli
