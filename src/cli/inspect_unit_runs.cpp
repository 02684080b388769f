#include "cli/inspect_parts.h"
#include "core/check.h"
#include "core/counted.h"
#include "core/quantity.h"
#include "runfile/gate_arms_run.h"
#include "runfile/patching_run.h"
#include "runfile/run_file_name.h"

#include <fmt/ranges.h>

namespace gainlens::cli {
namespace {

/// A text of a request.
std::string request_text(const Json& request, const char* key, const std::filesystem::path& path,
                         std::string_view lacks =
                             "its request has no text '{}'; delete the result and repeat the "
                             "command") {
  CHECK(request.is_object() && request.contains(key) && request[key].is_string(), "{}: {}", printable(path.string()),
        fmt::format(fmt::runtime(lacks), key));
  return printable(request[key].get<std::string>());
}

/// Adds what there is of a run without a result: its family, and how much is measured.
/// @throws InvalidArgument  it is being written; a unit is damaged
void add_begun_units(const std::filesystem::path& run, const analyses::CheckedUnits& units, Findings& findings) {
  findings.add("family", request_text(read_json_file(run / runfile::request_file_name), "family", run));
  CHECK(units.damaged.empty(), "{}", units.damaged.front());
  findings.add("finished",
               fmt::format("{}; repeat the command that makes the run, which continues", measured_parts(units)),
               {{"measured", units.parts - units.missing}, {"of", units.parts}});
  findings.add("checksums", fmt::format("{} as they were written (sha256)", counted_are(units.units, "unit")), true);
}

/// Inspects a run that is stored as units.
/// @param check   reads its units
/// @param read    reads its result
/// @param add     adds what the result holds
template <typename Run>
void inspect_units(const std::filesystem::path& path, Findings& findings, const char* result,
                   analyses::CheckedUnits (*check)(const std::filesystem::path&),
                   Run (*read)(const std::filesystem::path&, runfile::Proof),
                   void (*add)(const Run&, const std::filesystem::path&, Findings&)) {
  if (!std::filesystem::exists(path / result)) {
    runfile::check_not_being_written(path);
    return add_begun_units(path, check(path), findings);
  }
  const std::string unproven = runfile::prove_store(path, result);
  add(read(path, runfile::Proof::by_caller), path, findings);
  findings.add("checksums",
               unproven.empty() ? fmt::format("{} and its units are as they were written (sha256)", result) : unproven,
               unproven.empty());
}

void add_interventions(const runfile::InterventionRun& run, const std::filesystem::path& path, Findings& findings) {
  findings.add("family", request_text(run.request, "family", path));
  findings.add("interventions", fmt::format("{}, and {} of controls alone", run.asked, run.arms.size() - run.asked),
               {{"asked", run.asked}, {"controls_alone", run.arms.size() - run.asked}});
  findings.add("documents", counted(run.documents(), "document"), run.documents());
  findings.add("dtype", request_text(run.request, "dtype", path));
  findings.add("BOS", request_text(run.request, "bos_policy", path));
}

void inspect_interventions(const std::filesystem::path& path, Findings& findings) {
  findings.add("kind", "run of interventions");
  inspect_units(path, findings, runfile::intervention_result, analyses::read_checked_interventions,
                runfile::read_intervention_run, add_interventions);
}

void add_patching(const runfile::PatchingRun& run, const std::filesystem::path& path, Findings& findings) {
  findings.add("family", request_text(run.request, "family", path));
  findings.add("patches", fmt::format("{} in each direction", run.patches.size()), run.patches.size());
  findings.add("metric", run.request.contains("answer") ? "logit difference" : "divergence from the clean run");
  findings.add("dtype", request_text(run.request, "dtype", path));
  findings.add("BOS", request_text(run.request, "bos_policy", path));
}

void inspect_patching(const std::filesystem::path& path, Findings& findings) {
  findings.add("kind", "run of activation patching");
  inspect_units(path, findings, runfile::patching_result, analyses::read_checked_patches, runfile::read_patching_run,
                add_patching);
}

void add_gate_arms(const runfile::GateArmsRun& run, const std::filesystem::path& path, Findings& findings) {
  const auto text_of = [&](const char* key) {
    return request_text(run.request, key, path,
                        "gate-arms.json has no text '{}' in its request; delete it and repeat the command");
  };
  findings.add("family", text_of("family"));
  findings.add("arms", printable(fmt::format("{}", fmt::join(run.arms, ", ")), 200), run.arms);
  std::vector<std::string> contexts;
  contexts.reserve(run.contexts.size());
  for (const std::int64_t tokens : run.contexts) contexts.push_back(format_count(tokens));
  findings.add("contexts",
               fmt::format("{} tokens; trained with {}", fmt::join(contexts, ", "), format_count(run.trained_length)),
               run.contexts);
  findings.add("documents", counted(run.documents(), "document"), run.documents());
  findings.add("dtype", text_of("dtype"));
  findings.add("BOS", text_of("bos_policy"));
}

void inspect_gate_arms(const std::filesystem::path& path, Findings& findings) {
  findings.add("kind", "run of arms for gates");
  inspect_units(path, findings, runfile::gate_arms_result, analyses::read_checked_gate_arms,
                runfile::read_gate_arms_run, add_gate_arms);
}

}  // namespace

const RunInspection interventions_inspection = inspect_interventions, patching_inspection = inspect_patching,
                    gate_arms_inspection = inspect_gate_arms;

}  // namespace gainlens::cli
