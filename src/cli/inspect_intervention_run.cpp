#include "cli/inspect_parts.h"
#include "core/check.h"
#include "core/counted.h"
#include "runfile/intervention_run.h"

namespace gainlens::cli {

void inspect_intervention_run(const std::filesystem::path& path, Findings& findings) {
  findings.add("kind", "run of interventions");
  const runfile::InterventionRun run = runfile::read_intervention_run(path);
  const Json& request = run.request;
  const auto text_of = [&](const char* key) {
    CHECK(request.is_object() && request.contains(key) && request[key].is_string(),
          "{}: intervene.json has no text '{}' in its request; delete it and repeat the command",
          printable(path.string()), key);
    return printable(request[key].get<std::string>());
  };
  findings.add("family", text_of("family"));
  findings.add("interventions", fmt::format("{}, and {} of controls alone", run.asked, run.arms.size() - run.asked),
               {{"asked", run.asked}, {"controls_alone", run.arms.size() - run.asked}});
  findings.add("documents", counted(run.documents(), "document"), run.documents());
  findings.add("dtype", text_of("dtype"));
  findings.add("BOS", text_of("bos_policy"));
}

}  // namespace gainlens::cli
