#include "cli/application.h"

#include "analyses/audit.h"
#include "cli/given_run.h"
#include "core/console.h"
#include "core/error.h"
#include "core/json.h"
#include "core/quantity.h"
#include "reports/terminal/audit_terminal.h"

#include <memory>

namespace gainlens::cli {
namespace {

struct AuditArguments {
  std::string run, at;
  bool all = false;
};

void audit(const AuditArguments& arguments, bool json) {
  const GivenRun run = open_given_run(arguments.run);
  analyses::Options options;
  if (!arguments.at.empty()) options.at = parse_counts(arguments.at, "--at");
  const analyses::Audit result = analyses::audit(run.reader, options);
  print_result("{}",
               json ? json_text(analyses::to_json(result), 2) + "\n" : reports::print_audit(result, arguments.all));
}

}  // namespace

void add_audit(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* command = add_subcommand(
      app, subcommand_named("audit"), "gainlens audit RUN --all",
      "The lemma bounds the weight of key 0 from below by 1 - (delta + epsilon) / (mu c). Every norm in it is\n"
      "measured before W_O, at each query of the second half, in the unit of the values. The lemma is a theorem: a\n"
      "violation beyond rounding is an error of the measurement. A bound that is not above 0 says nothing.\n"
      "A statement is contradicted, not contradicted, not decidable because numbers are missing, or not measured by a\n"
      "sweep. A run made before sweeps stored these norms has no lemma; the reason is printed.");
  auto arguments = std::make_shared<AuditArguments>();
  command->add_option("run", arguments->run, "Run folder or run.h5")->required();
  command->add_option(
      "--at", arguments->at,
      "Context lengths in tokens to average over, comma-separated; 1k is 1024 (default: the two longest of the run)");
  command->add_flag(
      "--all", arguments->all,
      "Print every head, not only the heads with the strongest bounds and those that meet theirs most narrowly");
  set_action(*command, action, [arguments, &global] { audit(*arguments, global.json); });
}

}  // namespace gainlens::cli
