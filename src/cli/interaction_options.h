#pragma once

#include "data/interactions.h"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>

namespace gainlens::cli {

/// The data set of a recommender, as the command line gives it.
struct InteractionArguments {
  std::string path;
  std::string ties = "file";
  std::int64_t min_item_count = 0;
};

/// Adds --data, --ties and --min-item-count.
void add_interaction_options(CLI::App& command, InteractionArguments& arguments);

/// @throws InvalidArgument  as data::parse_tie_policy and data::read_interactions
data::Interactions read(const InteractionArguments& arguments);

}  // namespace gainlens::cli
