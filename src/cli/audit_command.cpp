#include "cli/commands.h"

#include "analyses/audit.h"
#include "core/console.h"
#include "core/error.h"
#include "core/quantity.h"
#include "reports/audit_terminal.h"
#include "runfile/run_proof.h"
#include "runfile/run_reader.h"

#include <memory>

namespace gainlens::cli {
namespace {

struct AuditArguments {
  std::string run, at;
  bool all = false;
};

void audit(const AuditArguments& arguments, bool json) {
  runfile::prove_run(arguments.run);  // before anything is read from it
  const auto run = runfile::RunReader::open(arguments.run);
  analyses::Options options;
  if (!arguments.at.empty()) options.at = parse_counts(arguments.at, "--at");
  const analyses::Audit result = analyses::audit(run, options);
  if (json) {
    print_result("{}\n", analyses::to_json(result).dump(2));
  } else {
    print_result("{}", reports::print_audit(result, arguments.all));
  }
}

}  // namespace

void add_audit(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* command = add_subcommand(
      app, "audit",
      "Does the sink lemma hold at every head, and what do the numbers say about statements that are false as printed?",
      "gainlens audit RUN --all",
      "The lemma bounds the weight of key 0 from below by 1 - (delta + epsilon) / (mu c), with every norm measured at "
      "each second-half\n"
      "query before W_O. It is a theorem, so that a violation beyond rounding is a fault of the measurement; a bound "
      "that is not above\n"
      "0 says nothing. Norms are in the unit of the values. A statement is contradicted, not contradicted, not "
      "decidable for want of\n"
      "numbers, or not measured by a sweep. Runs swept before the norms were stored have no lemma; the reason is "
      "printed.");
  auto arguments = std::make_shared<AuditArguments>();
  command->add_option("run", arguments->run, "Run folder or run.h5")->required();
  command->add_option("--at", arguments->at,
                      "Lengths in tokens to average over (default: 4k and 8k where present, else the two longest)");
  command->add_flag("--all", arguments->all,
                    "Every head, not only those with the strongest and the most narrowly met bounds");
  command->callback(
      [arguments, &global, &action] { action = [arguments, &global] { audit(*arguments, global.json); }; });
}

}  // namespace gainlens::cli
