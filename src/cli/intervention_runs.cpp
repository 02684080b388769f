#include "cli/intervention_runs.h"

#include "core/check.h"
#include "core/counted.h"
#include "reports/interventions/interventions_report.h"
#include "runfile/intervention_run.h"
#include "runfile/patching_run.h"

namespace gainlens::cli {

namespace fs = std::filesystem;

bool is_run_of_intervene(const fs::path& path) {
  return runfile::is_intervention_run(path) || runfile::is_patching_run(path);
}

void refuse_run_of_intervene(const fs::path& path, std::string_view command) {
  CHECK(!is_run_of_intervene(path),
        "{}: {} is a run of intervene, which proves its writes whenever it measures; `gainlens report {}` shows it",
        command, printable(path.string()), printable(path.string()));
}

reports::WrittenReport report_run_of_intervene(const fs::path& path, const fs::path& out,
                                               const reports::Writing& writing) {
  if (runfile::is_patching_run(path)) {
    const analyses::PatchingEffects effects = analyses::patching_effects(runfile::read_patching_run(path));
    return reports::write_patching_report({&effects}, out, writing);
  }
  const runfile::InterventionRun run = runfile::read_intervention_run(path);
  const analyses::InterventionEffects effects = analyses::intervention_effects(run);
  const auto length = run.request.find("length");
  CHECK(length != run.request.end() && length->is_number_integer(),
        "{}: its request has no length; delete intervene.json and repeat the command", printable(path.string()));
  const std::string of =
      fmt::format("{} of {}", counted(effects.documents, "document"), counted(length->get<std::int64_t>(), "token"));
  return reports::write_interventions_report({&effects, of}, out, writing);
}

}  // namespace gainlens::cli
