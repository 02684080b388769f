#pragma once

#include "data/interactions.h"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>

namespace gainlens::cli {

/// How a data set of interactions is read, as the command line says it.
struct InteractionPolicy {
  std::string ties = "file";
  std::int64_t min_item_count = 0;

  /// @throws InvalidArgument  as data::parse_tie_policy; a negative count
  data::InteractionOptions options() const;
};

/// Adds --ties and --min-item-count.
/// @param prefix  of their descriptions, for example "Of a data set: "
void add_interaction_policy(CLI::App& command, InteractionPolicy& policy, const std::string& prefix = "");

/// The data set of a recommender, as the command line gives it.
struct InteractionArguments {
  std::string path;
  InteractionPolicy policy;

  /// @throws InvalidArgument  as InteractionPolicy::options and data::read_interactions
  data::Interactions read() const;
};

/// Adds --data, --ties and --min-item-count.
void add_interaction_options(CLI::App& command, InteractionArguments& arguments);

}  // namespace gainlens::cli
