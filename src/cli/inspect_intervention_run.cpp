#include "cli/inspect_parts.h"
#include "core/check.h"
#include "core/counted.h"
#include "runfile/intervention_run.h"
#include "runfile/patching_run.h"

namespace gainlens::cli {
namespace {

/// A text of a request.
std::string request_text(const Json& request, const char* key, const std::filesystem::path& path) {
  CHECK(request.is_object() && request.contains(key) && request[key].is_string(),
        "{}: its request has no text '{}'; delete the result and repeat the command", printable(path.string()), key);
  return printable(request[key].get<std::string>());
}

void inspect_intervention_run(const std::filesystem::path& path, Findings& findings) {
  findings.add("kind", "run of interventions");
  const runfile::InterventionRun run = runfile::read_intervention_run(path);
  const Json& request = run.request;
  findings.add("family", request_text(request, "family", path));
  findings.add("interventions", fmt::format("{}, and {} of controls alone", run.asked, run.arms.size() - run.asked),
               {{"asked", run.asked}, {"controls_alone", run.arms.size() - run.asked}});
  findings.add("documents", counted(run.documents(), "document"), run.documents());
  findings.add("dtype", request_text(request, "dtype", path));
  findings.add("BOS", request_text(request, "bos_policy", path));
}

void inspect_patching_run(const std::filesystem::path& path, Findings& findings) {
  findings.add("kind", "run of activation patching");
  const runfile::PatchingRun run = runfile::read_patching_run(path);
  findings.add("family", request_text(run.request, "family", path));
  findings.add("patches", fmt::format("{} in each direction", run.patches.size()), run.patches.size());
  findings.add("metric", run.request.contains("answer") ? "logit difference" : "divergence from the clean run");
  findings.add("dtype", request_text(run.request, "dtype", path));
  findings.add("BOS", request_text(run.request, "bos_policy", path));
}

}  // namespace

extern const RunInspection intervention_inspection, patching_inspection;
const RunInspection intervention_inspection = {runfile::RunKind::interventions, inspect_intervention_run};
const RunInspection patching_inspection = {runfile::RunKind::patching, inspect_patching_run};

}  // namespace gainlens::cli
