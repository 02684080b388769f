#pragma once

#include "data/interactions.h"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

/// --ignore-config-key, of every command that opens the checkpoint of a decoder (models::IgnoredKeys).
void add_ignored_keys(CLI::App& command, std::vector<std::string>& keys);

/// @param what  what the command was given in place of such a checkpoint: "a recommender"
/// @throws InvalidArgument  keys were given
void refuse_ignored_keys(const std::vector<std::string>& keys, std::string_view what);

/// Adds an option that takes names separated by commas, such as `--arm plain,bft`. It may be given several times.
/// Unlike a CLI11 option with a delimiter, it does not drop empty names.
/// @param names  its default; replaced by what is given
/// @throws InvalidArgument  (when the command line is read) an empty name: "plain,"; a name twice
CLI::Option* add_name_list(CLI::App& command, const std::string& option, std::vector<std::string>& names,
                           const std::string& help);

/// The numbers of such an option.
/// @throws InvalidArgument  one is no finite number
std::vector<double> numbers_of(const std::vector<std::string>& texts, const std::string& option);

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
