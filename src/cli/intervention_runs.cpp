
#include "analyses/checks/unit_checks.h"
#include "cli/given_run.h"
#include "cli/run_kinds.h"
#include "core/check.h"
#include "core/counted.h"
#include "core/listener.h"
#include "interventions/index_range.h"
#include "reports/interventions/interventions_report.h"
#include "runfile/intervention_run.h"
#include "runfile/patching_run.h"

#include <string_view>
#include <utility>
#include <vector>

namespace gainlens::cli {

namespace fs = std::filesystem;

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

using Results = std::vector<analyses::CheckResult>;

Results check_interventions(const fs::path& path) {
  return analyses::run_checks(analyses::unit_checks(), analyses::read_checked_interventions(path));
}

Results check_patches(const fs::path& path) {
  return analyses::run_checks(analyses::unit_checks(), analyses::read_checked_patches(path));
}

/// @throws InvalidArgument  always: a page of a part of the run would mislead
[[noreturn]] void refuse_begun(const fs::path& path, const analyses::CheckedUnits& units) {
  throw_invalid("{}: is not finished: {}, and a page needs all; repeat the command that makes it, which continues",
                printable(path.string()), analyses::measured_parts(units));
}

/// A run, and what its losses are of.
struct ReadInterventions {
  runfile::InterventionRun run;
  std::string tokens;
};

ReadInterventions read_interventions(const fs::path& path) {
  if (fs::exists(path / runfile::intervention_result)) {
    runfile::InterventionRun run = runfile::read_intervention_run(path, tell_proof(path, runfile::intervention_result));
    std::string tokens = measured_tokens(run, path);
    return {std::move(run), std::move(tokens)};
  }
  analyses::BegunInterventions begun = analyses::read_begun_interventions(path);
  const std::string stopped = "the run was stopped: " + analyses::measured_parts(begun.units);
  tell_warning("{}: {}; repeat the command that makes it, which continues", printable(path.string()), stopped);
  std::string tokens = fmt::format("{} ({})", measured_tokens(begun.run, path), stopped);
  return {std::move(begun.run), std::move(tokens)};
}

void report_interventions(const ReportArguments& arguments, const GlobalOptions& global) {
  const fs::path out = folder_to_write(arguments), path = arguments.runs.front();
  const reports::Writing writing = writing_of(arguments);
  const auto [run, tokens] = read_interventions(path);
  const analyses::InterventionEffects effects = analyses::intervention_effects(run);
  finish_report(reports::write_interventions_report({&effects, tokens, names_of_run(path, run.request)}, out, writing),
                out, global.json);
}

void report_patches(const ReportArguments& arguments, const GlobalOptions& global) {
  const fs::path out = folder_to_write(arguments), path = arguments.runs.front();
  const reports::Writing writing = writing_of(arguments);
  if (!fs::exists(path / runfile::patching_result)) refuse_begun(path, analyses::read_checked_patches(path));
  const runfile::PatchingRun run = runfile::read_patching_run(path, tell_proof(path, runfile::patching_result));
  const analyses::PatchingEffects effects = analyses::patching_effects(run);
  finish_report(reports::write_patching_report({&effects, names_of_run(path, run.request)}, out, writing), out,
                global.json);
}

constexpr std::string_view not_compared =
    "is a run of intervene, which proves its writes whenever it measures; `gainlens report {0}` shows it";

}  // namespace

const RunCommands interventions_commands = {.kind = runfile::RunKind::interventions,
                                            .check = check_interventions,
                                            .report = report_interventions,
                                            .instead_of_compare = not_compared};
const RunCommands patching_commands = {.kind = runfile::RunKind::patching,
                                       .check = check_patches,
                                       .report = report_patches,
                                       .instead_of_compare = not_compared};

}  // namespace gainlens::cli
