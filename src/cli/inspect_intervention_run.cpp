#include "cli/inspect_parts.h"
#include "core/check.h"
#include "core/counted.h"
#include "runfile/intervention_run.h"
#include "runfile/patching_run.h"
#include "runfile/run_file_name.h"

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
  if (add_begun_units(path, runfile::intervention_result, analyses::read_checked_interventions, findings)) return;
  const std::string unproven = runfile::prove_store(path, runfile::intervention_result);
  const runfile::InterventionRun run = runfile::read_intervention_run(path, runfile::Proof::by_caller);
  const Json& request = run.request;
  findings.add("family", request_text(request, "family", path));
  findings.add("interventions", fmt::format("{}, and {} of controls alone", run.asked, run.arms.size() - run.asked),
               {{"asked", run.asked}, {"controls_alone", run.arms.size() - run.asked}});
  findings.add("documents", counted(run.documents(), "document"), run.documents());
  findings.add("dtype", request_text(request, "dtype", path));
  findings.add("BOS", request_text(request, "bos_policy", path));
  add_store_proof(runfile::intervention_result, unproven, findings);
}

void inspect_patching_run(const std::filesystem::path& path, Findings& findings) {
  findings.add("kind", "run of activation patching");
  if (add_begun_units(path, runfile::patching_result, analyses::read_checked_patches, findings)) return;
  const std::string unproven = runfile::prove_store(path, runfile::patching_result);
  const runfile::PatchingRun run = runfile::read_patching_run(path, runfile::Proof::by_caller);
  findings.add("family", request_text(run.request, "family", path));
  findings.add("patches", fmt::format("{} in each direction", run.patches.size()), run.patches.size());
  findings.add("metric", run.request.contains("answer") ? "logit difference" : "divergence from the clean run");
  findings.add("dtype", request_text(run.request, "dtype", path));
  findings.add("BOS", request_text(run.request, "bos_policy", path));
  add_store_proof(runfile::patching_result, unproven, findings);
}

}  // namespace

bool add_begun_units(const std::filesystem::path& run, const std::string& result,
                     analyses::CheckedUnits (*read)(const std::filesystem::path&), Findings& findings) {
  if (std::filesystem::exists(run / result)) return false;
  runfile::check_not_being_written(run);
  const analyses::CheckedUnits units = read(run);
  findings.add("family", request_text(read_json_file(run / runfile::request_file_name), "family", run));
  CHECK(units.damaged.empty(), "{}", units.damaged.front());
  findings.add("finished",
               fmt::format("{}; repeat the command that makes the run, which continues", measured_parts(units)),
               {{"measured", units.parts - units.missing}, {"of", units.parts}});
  findings.add("checksums", fmt::format("{} as they were written (sha256)", counted_are(units.units, "unit")), true);
  return true;
}

void add_store_proof(const std::string& result, const std::string& unproven, Findings& findings) {
  findings.add("checksums",
               unproven.empty() ? fmt::format("{} and its units are as they were written (sha256)", result) : unproven,
               unproven.empty());
}

extern const RunInspection intervention_inspection, patching_inspection;
const RunInspection intervention_inspection = {runfile::RunKind::interventions, inspect_intervention_run};
const RunInspection patching_inspection = {runfile::RunKind::patching, inspect_patching_run};

}  // namespace gainlens::cli
