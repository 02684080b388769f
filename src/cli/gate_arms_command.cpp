#include "cli/application.h"

#include "analyses/checks/unit_checks.h"
#include "analyses/gate_arm_effects.h"
#include "cli/command_options.h"
#include "cli/given_run.h"
#include "cli/interruption.h"
#include "cli/model_options.h"
#include "cli/run_kinds.h"
#include "core/check.h"
#include "core/console.h"
#include "core/counted.h"
#include "core/json.h"
#include "core/quantity.h"
#include "interventions/run_gate_arms.h"
#include "reports/gate_arms/gate_arms_report.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

namespace gainlens::cli {
namespace {

struct GateArmsArguments : ModelArguments {
  interventions::GateArmsOptions options;  ///< those that are given as they are
  TextOptions text;
  std::string calibration;
  std::string trained_length;
  std::string contexts;
  std::optional<std::int64_t> calibration_samples;
  std::string out;
  std::string report;
};

interventions::GateArmsOptions options_of(const GateArmsArguments& arguments, const GlobalOptions& global) {
  interventions::GateArmsOptions options = arguments.options;
  arguments.give(options, global, "gate-arms");
  options.source = arguments.text.source();
  options.calibration = arguments.calibration;
  options.trained_length = parse_count(arguments.trained_length, "--trained-length");
  if (!arguments.contexts.empty()) options.contexts = parse_counts(arguments.contexts, "--contexts");
  options.calibration_documents = arguments.calibration_samples.value_or(options.documents);
  options.seed = global.seed;
  check_can_be_run_folder(arguments.out);
  options.out = arguments.out;
  return options;
}

/// What the losses of a run are of.
std::string measured_in(const runfile::GateArmsRun& run) {
  return fmt::format("the last {} of {}; {}", counted(run.request.at("targets").get<std::int64_t>(), "token"),
                     counted(run.documents(), "document"), run.request.at("bos_policy").get<std::string>());
}

void measure_gate_arms(const GateArmsArguments& arguments, const GlobalOptions& global) {
  if (!arguments.report.empty()) check_report_folder(arguments.report, arguments.out);
  const ScopedInterruption told(arguments.out, "every finished arm of every document");
  const runfile::GateArmsRun run = interventions::run_gate_arms(options_of(arguments, global));
  const analyses::GateArmEffects effects = analyses::gate_arm_effects(run, global.seed);
  const std::string of = measured_in(run);
  if (!arguments.report.empty())
    tell_written(reports::write_gate_arms_report(effects, of, arguments.report), arguments.report, "gate-arms");
  if (global.json) {
    OrderedJson json = to_json(effects);
    json["targets"] = arguments.options.targets;
    json["bos_policy"] = run.request.at("bos_policy").get<std::string>();
    print_result("{}\n", json_text(json));
    return;
  }
  print_result("{}", reports::print_gate_arms(effects, of));
}

std::vector<analyses::CheckResult> check_gate_arms(const std::filesystem::path& path) {
  return analyses::run_checks(analyses::unit_checks(), analyses::read_checked_gate_arms(path));
}

void report_gate_arms(const ReportArguments& arguments, const GlobalOptions& global) {
  const std::filesystem::path out = folder_to_write(arguments), path = arguments.runs.front();
  const reports::Writing writing = writing_of(arguments);
  const runfile::GateArmsRun run = runfile::read_gate_arms_run(path, tell_proof(path, runfile::gate_arms_result));
  try {
    const auto effects = analyses::gate_arm_effects(run, run.request.at("seed").get<std::uint64_t>());
    finish_report(reports::write_gate_arms_report(effects, measured_in(run), out, writing), out, global.json);
  } catch (const Json::exception&) {
    throw_invalid("{}: its request lacks what the report says; delete {} and repeat the command",
                  printable(path.string()), runfile::gate_arms_result);
  }
}

}  // namespace

const RunCommands gate_arms_commands = {
    .kind = runfile::RunKind::gate_arms, .check = check_gate_arms, .report = report_gate_arms};

void add_gate_arms(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* command = add_subcommand(
      app, subcommand_named("gate-arms"),
      "gainlens gate-arms MODEL --text wiki.valid.txt --calibration wiki.test.txt --trained-length 2k --out run",
      "Each arm stands in the place of the gates of all layers. Its loss is compared with that of the model as it is,\n"
      "document by document, on the same last tokens, in contexts that grow to the left.\n"
      "  native       the model as it is\n"
      "  constant     the gate's mean over the calibration text\n"
      "  gain         K' = lambda_obs / (lambda + lambda_obs), one lambda for each head: that with the gate's mean\n"
      "  scaled-gain  c K, one c for each head: that with the gate's energy\n"
      "  modulated    the gate times K over its mean; without gates K over its mean\n"
      "  permuted     the queries of gain (without gates of modulated) in another order within each head\n"
      "  position     gain as a function of the position alone: its mean over the calibration text\n"
      "  raw          K with lambda = 1\n"
      "  one          1\n"
      "docs/analyses/prediction-3.md tells how to read the tables, and what is declared before anything is measured.");
  auto arguments = std::make_shared<GateArmsArguments>();
  add_model_option(*command, arguments->model);
  add_text_options(*command, arguments->text);
  command->add_option("--calibration", arguments->calibration,
                      "Text (or ids, with --tokens) that gates and K are averaged over. It may share no text with the "
                      "documents");
  command
      ->add_option("--trained-length", arguments->trained_length,
                   "Tokens of the contexts that the model was trained with; 1k is 1024")
      ->required();
  command->add_option("--contexts", arguments->contexts,
                      "Tokens of the contexts, separated by commas, the trained length among them (default: half of "
                      "it, it, twice it and four times it)");
  command
      ->add_option("--targets", arguments->options.targets,
                   "Number of last tokens of a document that are predicted, the same in each of its contexts")
      ->capture_default_str();
  command->add_option("--samples", arguments->options.documents, "Number of documents")->capture_default_str();
  command->add_option("--calibration-samples", arguments->calibration_samples,
                      "Number of calibration documents, each as long as the longest context (default: as --samples)");
  command->add_flag("--few-documents", arguments->options.few_documents,
                    fmt::format("Allow fewer than {} documents", runfile::declared.fewest_documents));
  add_name_list(*command, "--arms", arguments->options.arms,
                "Arms, separated by commas; native is always there (default: all that the model can have)");
  add_dtype_option(*command, arguments->dtype);
  add_stream_weights(*command, arguments->stream_weights);
  command->add_option("--out", arguments->out,
                      "Run folder that keeps the results. The same command called again continues it, or prints it");
  command->add_option(
      "--report", arguments->report,
      "Folder for report.html, summary.json, the figure of the losses over contexts, and a table as CSV; "
      "made if it does not exist");
  add_ignored_keys(*command, arguments->ignored_config_keys);
  set_action(*command, action, [arguments, &global] { measure_gate_arms(*arguments, global); });
}

}  // namespace gainlens::cli
