#include "cli/commands.h"
#include "cli/inspect_parts.h"

namespace gainlens::cli {

void add_inspect(CLI::App& app, const GlobalOptions& global, Action& action) {
  add_inspect_with(app, global, action, {add_expected_time, inspect_recommender});
}

}  // namespace gainlens::cli
