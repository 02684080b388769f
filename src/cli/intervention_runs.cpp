#include "cli/intervention_runs.h"

#include "core/check.h"
#include "core/counted.h"
#include "interventions/index_range.h"
#include "reports/interventions/interventions_report.h"
#include "runfile/intervention_names.h"
#include "runfile/patching_run.h"
#include "runfile/run_kind.h"

#include <utility>

namespace gainlens::cli {

namespace fs = std::filesystem;

bool is_run_of_intervene(const fs::path& path) {
  return runfile::is_run_of(path, {runfile::RunKind::interventions, runfile::RunKind::patching});
}

void refuse_run_of_intervene(const fs::path& path, std::string_view command) {
  CHECK(!is_run_of_intervene(path),
        "{}: {} is a run of intervene, which proves its writes whenever it measures; `gainlens report {}` shows it",
        command, printable(path.string()), printable(path.string()));
}

std::string measured_tokens(const runfile::InterventionRun& run, const fs::path& path) {
  const auto number = [&](const char* name) {
    const auto found = run.request.find(name);
    CHECK(found != run.request.end() && found->is_number_integer(),
          "{}: its request has no {}; delete intervene.json and repeat the command", printable(path.string()), name);
    return found->get<std::int64_t>();
  };
  const std::string all =
      fmt::format("{} of {}", counted(run.documents(), "document"), counted(number("length"), "token"));
  if (!run.request.contains("targets")) return all;
  const Json& targets = run.request["targets"];
  if (targets.is_string()) {
    const auto range = interventions::parse_index_range(targets.get<std::string>(),
                                                        printable(path.string()) + ": its request has targets ");
    return fmt::format("positions {} to {} of {}", range.first, range.end - 1, all);
  }
  return fmt::format("the last {} of {}", counted(number("targets"), "token"), all);
}

namespace {

/// What was run, as people call it; of a run without names the family of its model.
runfile::InterventionNames names_of_run(const fs::path& path, const Json& request) {
  if (auto names = runfile::read_intervention_names(path)) return std::move(*names);
  const auto family = request.find("family");
  return {family != request.end() && family->is_string() ? family->get<std::string>() : std::string("a model")};
}

}  // namespace

reports::WrittenReport report_run_of_intervene(const fs::path& path, const fs::path& out,
                                               const reports::Writing& writing) {
  if (runfile::is_run_of(path, {runfile::RunKind::patching})) {
    const runfile::PatchingRun run = runfile::read_patching_run(path);
    const analyses::PatchingEffects effects = analyses::patching_effects(run);
    return reports::write_patching_report({&effects, names_of_run(path, run.request)}, out, writing);
  }
  const runfile::InterventionRun run = runfile::read_intervention_run(path);
  const analyses::InterventionEffects effects = analyses::intervention_effects(run);
  return reports::write_interventions_report({&effects, measured_tokens(run, path), names_of_run(path, run.request)},
                                             out, writing);
}

}  // namespace gainlens::cli
