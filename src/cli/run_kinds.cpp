#include "cli/run_kinds.h"

#include "core/check.h"

#include <algorithm>
#include <optional>

namespace gainlens::cli {

// Each in the file of its kind.
extern const RunCommands sweep_commands, intervention_commands, patching_commands, experiment_commands,
    recommender_sweep_commands, recommender_commands, gate_arms_commands, language_training_commands;

std::span<const RunCommands* const> run_kinds() {
  static constexpr const RunCommands* kinds[] = {
      &sweep_commands,      &intervention_commands,      &patching_commands,
      &experiment_commands, &recommender_sweep_commands, &recommender_commands,
      &gate_arms_commands,  &language_training_commands};
  return kinds;
}

const RunCommands& commands_of(const std::filesystem::path& path) {
  const std::optional<runfile::FoundRun> run = runfile::identify(path);
  if (!run) return *run_kinds().front();
  const auto found = std::ranges::find(run_kinds(), run->kind, [](const RunCommands* one) { return one->kind; });
  ASSERT(found != run_kinds().end(), "no commands for {}", runfile::words_of(run->kind));
  return **found;
}

}  // namespace gainlens::cli
