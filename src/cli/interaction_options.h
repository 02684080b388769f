#pragma once

#include "data/interactions.h"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::cli {

/// How a data set of interactions is read, as the command line says it.
struct InteractionPolicy {
  std::string ties = "file";
  std::int64_t min_item_count = 0;
  std::string duplicates = "keep";
  std::string split = "leave-one-out";
  std::string user_column, item_column, time_column, delimiter, quotes;
  bool no_header = false;

  /// @throws InvalidArgument  as data::parse_tie_policy, data::parse_duplicates, data::parse_delimiter,
  ///     data::parse_quotes and data::parse_split_policy; a negative count; --no-header without the names of columns
  data::InteractionOptions options() const;
};

/// The options of a policy, for commands that refuse them elsewhere.
inline constexpr const char* interaction_policy_options[] = {
    "--ties",        "--min-item-count", "--duplicates", "--user-column", "--item-column",
    "--time-column", "--delimiter",      "--quotes",     "--no-header",   "--split"};

/// Adds interaction_policy_options.
/// @param prefix  of their descriptions, for example "Of a data set: "
void add_interaction_policy(CLI::App& command, InteractionPolicy& policy, const std::string& prefix = "");

/// The data set of a recommender, as the command line gives it.
struct InteractionArguments {
  std::string path;
  InteractionPolicy policy;

  /// @param catalogue  see data::InteractionOptions
  /// @throws InvalidArgument  as InteractionPolicy::options and data::read_interactions
  data::Interactions read(std::vector<std::string> catalogue = {}) const;
  /// Says on standard error how many users were left out, if any were. To be called when nothing is refused any more: a
  /// refusal is one line.
  void tell_left_out(const data::Interactions& read) const;
  /// The file's name without folder, compression and format: what readers call the data set.
  std::string name() const;
};

/// Adds --data and interaction_policy_options.
void add_interaction_options(CLI::App& command, InteractionArguments& arguments);

/// Refuses interaction_policy_options where no data set is read.
/// @param why  "is an option of --data", the middle of the message
/// @throws InvalidArgument  one of them was given
void refuse_interaction_policy(const CLI::App& command, std::string_view why);

}  // namespace gainlens::cli
