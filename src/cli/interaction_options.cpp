#include "cli/interaction_options.h"

#include "core/check.h"

namespace gainlens::cli {

void add_interaction_options(CLI::App& command, InteractionArguments& arguments) {
  command
      .add_option("--data", arguments.path,
                  "Interactions, plain or gzipped: RecBole .inter, `user item item ...` lines, MovieLens ratings "
                  "(`::`), or Amazon review JSON lines")
      ->required();
  command
      .add_option("--ties", arguments.ties,
                  "Order of a user's interactions at the same time: file, item, or random:SEED")
      ->capture_default_str();
  command
      .add_option("--min-item-count", arguments.min_item_count,
                  "Items with fewer interactions are dropped first; users with fewer than 3 always are")
      ->capture_default_str();
}

data::Interactions read(const InteractionArguments& arguments) {
  CHECK(arguments.min_item_count >= 0, "--min-item-count: {}; must not be negative", arguments.min_item_count);
  data::InteractionOptions options;
  options.ties = data::parse_tie_policy(arguments.ties);
  options.min_item_count = arguments.min_item_count;
  return data::read_interactions(arguments.path, options);
}

}  // namespace gainlens::cli
