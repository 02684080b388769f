#include "cli/interaction_options.h"

#include "core/check.h"

namespace gainlens::cli {

data::InteractionOptions InteractionPolicy::options() const {
  CHECK(min_item_count >= 0, "--min-item-count: {}; must be at least 0", min_item_count);
  return {.ties = data::parse_tie_policy(ties), .min_item_count = min_item_count};
}

void add_interaction_policy(CLI::App& command, InteractionPolicy& policy, const std::string& prefix) {
  const auto described = [&](std::string text) {
    if (prefix.empty()) text[0] = static_cast<char>(text[0] - 'a' + 'A');
    return prefix + text;
  };
  command
      .add_option("--ties", policy.ties,
                  described("order of a user's interactions at the same time: file (as in the file), item (by item id) "
                            "or random:SEED"))
      ->capture_default_str();
  command
      .add_option("--min-item-count", policy.min_item_count,
                  described("drop items with fewer interactions before users are dropped"))
      ->capture_default_str();
}

data::Interactions InteractionArguments::read() const {
  return data::read_interactions(path, policy.options());
}

void add_interaction_options(CLI::App& command, InteractionArguments& arguments) {
  command
      .add_option("--data", arguments.path,
                  "Interactions, plain or gzipped: RecBole .inter, `user item item ...` lines, MovieLens ratings "
                  "(`::`), or Amazon review JSON lines")
      ->required();
  add_interaction_policy(command, arguments.policy);
}

}  // namespace gainlens::cli
