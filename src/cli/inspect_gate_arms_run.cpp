#include "cli/inspect_parts.h"
#include "core/check.h"
#include "core/counted.h"
#include "core/quantity.h"
#include "runfile/gate_arms_run.h"

#include <fmt/ranges.h>

namespace gainlens::cli {

namespace {

void inspect_gate_arms_run(const std::filesystem::path& path, Findings& findings) {
  findings.add("kind", "run of arms for gates");
  if (add_begun_units(path, runfile::gate_arms_result, analyses::read_checked_gate_arms, findings)) return;
  const std::string unproven = runfile::prove_store(path, runfile::gate_arms_result);
  const runfile::GateArmsRun run = runfile::read_gate_arms_run(path, runfile::Proof::by_caller);
  const auto text_of = [&](const char* key) {
    CHECK(run.request.is_object() && run.request.contains(key) && run.request[key].is_string(),
          "{}: gate-arms.json has no text '{}' in its request; delete it and repeat the command",
          printable(path.string()), key);
    return printable(run.request[key].get<std::string>());
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
  add_store_proof(runfile::gate_arms_result, unproven, findings);
}

}  // namespace

extern const RunInspection gate_arms_inspection;
const RunInspection gate_arms_inspection = {runfile::RunKind::gate_arms, inspect_gate_arms_run};

}  // namespace gainlens::cli
