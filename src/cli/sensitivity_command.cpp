#include "cli/application.h"

#include "analyses/sensitivity.h"
#include "cli/given_run.h"
#include "core/check.h"
#include "core/console.h"
#include "core/json.h"
#include "reports/sensitivity/sensitivity_report.h"
#include "reports/sensitivity/sensitivity_words.h"
#include "runfile/recommend_run.h"

#include <fmt/ranges.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace gainlens::cli {
namespace {

namespace fs = std::filesystem;

struct SensitivityArguments {
  std::string run;
  std::string arm, out;
  std::string metric = analyses::SensitivityOptions{}.metric.name();
  double margin = 100 * analyses::SensitivityOptions{}.margin;  // percent
  bool validation = false;
};

void run(const SensitivityArguments& arguments, const GlobalOptions& global) {
  const analyses::SensitivityOptions options{
      .arm = arguments.arm, .metric = parse_ranking_metric(arguments.metric), .margin = arguments.margin / 100};
  check(options);
  if (!arguments.out.empty()) check_holds_no_run(arguments.out);
  auto given = given_recommend_run(arguments.run);
  std::vector<std::string> notes;
  if (arguments.validation) {
    given =
        std::make_shared<const runfile::RecommendRun>(runfile::on_validation_items(*given, printable(arguments.run)));
    notes.emplace_back(validation_items_note);
  }
  const analyses::Sensitivity sensitivity = analyses::sensitivity(arguments.run, given, options);
  if (!arguments.out.empty())
    tell_written(reports::write_sensitivity_report(sensitivity, arguments.out, notes), arguments.out, "sensitivity");
  if (global.json) {
    OrderedJson json = analyses::to_json(sensitivity);
    json["held_out"] = arguments.validation ? "validation" : "test";
    print_result("{}\n", json_text(json, 2));
    return;
  }
  for (const std::string& note : notes) print_result("{}\n", note);
  print_result("{}", reports::print_sensitivity(sensitivity));
}

}  // namespace

void add_sensitivity(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* command = add_subcommand(
      app, subcommand_named("sensitivity"), "gainlens sensitivity RUN --out page",
      "Reads a run that train recommend --grid made: an arm with its own settings, the reference, and with variants\n"
      "that each change one setting. Each is compared with the reference, paired by seed. A knob is flat if every\n"
      "setting is shown to lie within the margin; it differs if a setting does after Holm's correction over all\n"
      "settings of all knobs; otherwise it is not decided. docs/analyses/sensitivity.md says how to read it.");
  auto arguments = std::make_shared<SensitivityArguments>();
  command->add_option("run", arguments->run, "Run folder, or its run.h5")->required();
  command->add_option("--arm", arguments->arm, "Arm to read (default: the only one that has variants)");
  command->add_option("--metric", arguments->metric, "hr@5, hr@10, hr@20, ndcg@5, ndcg@10, ndcg@20, mrr or mrr@10")
      ->capture_default_str();
  command
      ->add_option(
          "--margin", arguments->margin,
          "Largest change that still counts as flat, in percent of the reference's mean. The paper calls 0.5%\n"
          "to 1% worth tuning")
      ->capture_default_str();
  command->add_flag("--validation", arguments->validation,
                    "Read the ranks of the validation items, to choose settings by, and not those of the test items");
  command->add_option("--out", arguments->out,
                      "Folder for report.html, summary.json, the figures, and tables as LaTeX and CSV; made if it does "
                      "not exist");
  set_action(*command, action, [arguments, &global] { run(*arguments, global); });
}

}  // namespace gainlens::cli
