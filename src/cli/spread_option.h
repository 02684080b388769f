#pragma once

#include "experiment/experiment.h"

#include <CLI/CLI.hpp>

#include <string>

namespace gainlens::cli {

/// Adds --spread. Its text is read by parse_spread().
void add_spread_option(CLI::App& command, std::string& spread);
/// @throws InvalidArgument  neither batches nor seeds
experiment::Spread parse_spread(const std::string& spread);

}  // namespace gainlens::cli
