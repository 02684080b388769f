#pragma once

#include "analyses/published_results.h"

#include <string>
#include <vector>

namespace gainlens::cli {

/// Published results for the terminal: a heading, and a line for each model. Empty without results.
std::string published_lines(const std::vector<analyses::PublishedResult>& results);

}  // namespace gainlens::cli
