#include "cli/application.h"

#include "analyses/estimator_truth.h"
#include "cli/given_run.h"
#include "core/console.h"
#include "core/error.h"
#include "core/json.h"
#include "core/progress.h"
#include "reports/estimators/estimator_words.h"
#include "reports/estimators/estimators_report.h"

#include <ATen/Parallel.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>

namespace gainlens::cli {
namespace {

struct EstimatorsArguments {
  analyses::TruthOptions options;
  std::string out;
};

void judge_estimators(EstimatorsArguments arguments, const GlobalOptions& global) {
  arguments.options.seed = global.seed;
  arguments.options.threads = static_cast<std::size_t>(std::max(at::get_num_threads(), 1));
  check(arguments.options);
  if (!arguments.out.empty()) check_holds_no_run(arguments.out);
  const double cells = static_cast<double>(analyses::truth_scenarios.size() * arguments.options.n_eff.size());
  Progress progress("simulating", cells, "draws", global.quiet);
  const analyses::EstimatorTruth truth =
      analyses::estimator_truth(arguments.options, [&](const analyses::TruthCell& cell) {
        progress.advance(1, static_cast<double>(arguments.options.draws), analyses::name_of(cell.scenario));
      });
  progress.finish();
  if (!arguments.out.empty())
    tell_written(reports::write_estimators_report(truth, arguments.out), arguments.out, "estimators");
  print_result("{}", global.json ? json_text(analyses::to_json(truth), 2) + "\n" : reports::print_estimators(truth));
}

}  // namespace

void add_estimators(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* command = add_subcommand(
      app, subcommand_named("estimators"), "gainlens estimators --draws 500 --out estimators-report",
      "The precision of attention's estimate e = sum p v is lambda_obs = 1/V. Each estimator of V is set against the\n"
      "true variance on simulated queries: normal values, values of another scale, scores that depend on values,\n"
      "heavy tails, noisy tokens, equal values. docs/estimators.md has the formulas and says what is random.");
  auto arguments = std::make_shared<EstimatorsArguments>();
  command
      ->add_option("--draws", arguments->options.draws,
                   "Number of simulated queries of each scenario and n_eff; 5000 take about 10 s on two cores")
      ->capture_default_str();
  command
      ->add_option("--dimensions", arguments->options.dimensions,
                   "Head size d: the prior's variance is 1/d, in the square of the values' unit")
      ->capture_default_str();
  command
      ->add_option(
          "--n-eff", arguments->options.n_eff,
          "Effective numbers of keys, rising, from 1 to 200, separated by commas (default: 1,2,3,5,10,20,50,100)")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--out", arguments->out,
                      "Folder for report.html, summary.json, the figure, and tables as LaTeX and CSV; made if it does "
                      "not exist");
  set_action(*command, action, [arguments, &global] { judge_estimators(*arguments, global); });
}

}  // namespace gainlens::cli
