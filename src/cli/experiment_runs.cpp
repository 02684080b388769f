// What the commands for every kind of run do with the runs of experiments.
#include "analyses/experiment_comparison.h"
#include "analyses/filter_layers.h"
#include "analyses/gain_decisions.h"
#include "analyses/noise_levels.h"
#include "cli/given_run.h"
#include "cli/run_kinds.h"
#include "core/check.h"
#include "core/console.h"
#include "core/json.h"
#include "core/unit_scores.h"
#include "experiment/proven_run.h"
#include "experiment/result_file.h"
#include "reports/comparison/experiment_page.h"
#include "reports/finetune/finetune_report.h"
#include "reports/terminal/compare_terminal.h"
#include "runfile/experiment_run.h"
#include "runfile/run_file_name.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

namespace gainlens::cli {
namespace {

namespace fs = std::filesystem;

/// Reads a run of `train finetune` for its report.
/// @param path  a run folder or a run.h5
/// @param name  of the run, for readers
/// @throws InvalidArgument   as runfile::read_experiment_run() and analyses::noise_levels()
/// @throws InternalError     its arms have no levels of noise
reports::FinetunedRun read_finetuned_run(const std::filesystem::path& path, const std::string& name,
                                         const analyses::ExperimentOptions& options) {
  ProvenTrainings<runfile::ExperimentRun> proven = prove_experiment_run(path);
  const std::shared_ptr<const runfile::ExperimentRun> run = proven.run;
  ASSERT(analyses::has_noise_levels(*run), "the report of levels of noise of a run without them");
  reports::FinetunedRun finetuned{name, run, std::move(proven.unproven), analyses::noise_levels(path, run, {}, options),
                                  {},   {}};
  tell_unproven(path, finetuned.unproven);
  for (std::size_t arm = 0; arm < run->arms.size(); ++arm) {
    const std::string label = printable(run->arms[arm], 60);
    std::vector<analyses::FilterLayer> layers = analyses::filter_layers(*run, arm);
    reports::GammaPath path_of{label, {}};
    std::vector<double> plain, filtered;
    for (std::size_t seed = 0; seed < run->seeds.size(); ++seed) {
      const auto& result = run->result(arm, seed);
      if (result && result->test.contains(runfile::start_loss) &&
          result->test.contains(runfile::start_loss_with_filter)) {
        plain.push_back(result->test.at(runfile::start_loss));
        filtered.push_back(result->test.at(runfile::start_loss_with_filter));
      }
      if (result && result->curve.contains(runfile::gamma_curve))
        path_of.seeds.push_back(result->curve.at(runfile::gamma_curve));
    }
    if (!layers.empty()) finetuned.filters.push_back({label, std::move(layers), plain, filtered});
    if (!path_of.seeds.empty()) finetuned.gammas.push_back(std::move(path_of));
  }
  const Json& data = run->request.at("data");
  const std::string task = data.contains("task") && data.at("task").is_string() ? data.at("task") : "";
  if (task == "squad" || task == "nq") finetuned.paper_task = task;
  if (task == "nq" && data.contains("passages") && data.at("passages").is_number())
    finetuned.passages = data.at("passages").get<double>();
  return finetuned;
}

/// That a request may ask for: more is damage.
constexpr std::size_t max_units = 100'000'000;

std::vector<analyses::CheckResult> check_experiment_run(const fs::path& path) {
  const runfile::ExperimentRun run = runfile::read_experiment_run(path);
  analyses::CheckedExperiment checked(run);
  note_files(checked, [&](auto& faults) {
    auto proven = experiment::read_proven_run(path, experiment::TrainingProof::files);
    faults = std::move(proven.faults);
    return fmt::format("{}", fmt::join(proven.unproven, " "));
  });
  return analyses::run_checks(analyses::experiment_checks(), checked);
}

/// What a training alone tells of the units and their scores. Their names are in the run.
void describe_units(runfile::ExperimentRun& run) {
  const auto& result = run.results.front();
  std::size_t units = 0;
  if (result) {
    for (const auto& [name, scores] : result->scores) {
      run.unit_scores.push_back({name, true, "1"});
      units = std::max(units, scores.size());
    }
  }
  const Json asked = run.request.value(Json::json_pointer("/data/test"), Json());
  if (asked.is_number_unsigned()) units = asked.get<std::size_t>();
  CHECK(units <= max_units, "request.json: 'test' is {}, which is no number of {}s", units, run.unit());
  for (std::size_t unit = 0; unit < units; ++unit) run.units.push_back(fmt::format("{} {}", run.unit(), unit + 1));
}

/// A training alone, as a run of one arm and one seed.
std::vector<analyses::CheckResult> check_trained(const GivenTraining& training) {
  runfile::ExperimentRun run;
  const fs::path request = training.run / runfile::request_file_name;
  run.request = read_json_file(request);
  CHECK(run.request.is_object() && run.request.value("unit", Json()).is_string() && is_unit_noun(run.unit()) &&
            run.request.value("data", Json()).is_object(),
        "{}: is not the request of an experiment", printable(request.string()));
  run.arms = {training.label};
  run.seeds = {training.seed};
  run.results.resize(1);
  const fs::path file = training.folder / experiment::result_name;
  std::optional<experiment::StoredResult> stored;
  if (fs::exists(file)) {
    stored = experiment::load_result(file, training.label, training.seed);
    run.results.front() = stored->result;
    describe_units(run);
  }
  analyses::CheckedExperiment checked(run);
  checked.alone = true;
  checked.unproven = "nothing to compare yet";
  if (stored) {
    note_files(checked, [&](auto& faults) {
      experiment::prove_files(training.folder, *stored, &faults);
      return std::string();
    });
  }
  return analyses::run_checks(analyses::experiment_checks(), checked);
}

/// Every arm against the baseline of its split.
std::vector<analyses::ExperimentComparison> compared_pairs(const GivenArms<runfile::ExperimentRun>& given,
                                                           const analyses::Pairing& pairing,
                                                           const analyses::ExperimentOptions& options) {
  std::vector<analyses::ExperimentComparison> comparisons;
  for (const analyses::ExperimentPair& pair : analyses::pair_arms(given.arms, pairing))
    comparisons.push_back(analyses::compare_arms(pair, options));
  return comparisons;
}

void report_experiment(const ReportArguments& arguments, const GlobalOptions& global) {
  const fs::path out = folder_to_write(arguments), path = arguments.runs.front();
  analyses::ExperimentOptions options;
  options.resampling.seed = options.resamples.seed = global.seed;
  if (!analyses::has_noise_levels(runfile::read_experiment_run(path))) {
    CHECK(arguments.style.empty(), "--style: the report of {} has one style; leave it out", printable(path.string()));
    const auto given = read_arms<runfile::ExperimentRun>({path.string()}, &prove_experiment_run);
    const auto comparisons = compared_pairs(given, {}, options);
    given.tell();
    finish_report(reports::write_experiment_page(comparisons, given.sentences(), out), out, global.json);
    return;
  }
  finish_report(reports::write_finetune_report(
                    read_finetuned_run(path, printable(folder_of_run(path).filename().string()), options), out,
                    writing_of(arguments)),
                out, global.json);
}

void compare_experiments(const CompareArguments& arguments, const GlobalOptions& global) {
  analyses::ExperimentOptions options{.scores = arguments.metrics, .margin = arguments.margin};
  options.resampling.seed = global.seed;
  options.resamples = {arguments.resamples, global.seed};
  if (!arguments.out.empty()) check_holds_no_run(arguments.out);
  const auto given = read_arms<runfile::ExperimentRun>(arguments.runs, &prove_experiment_run);
  const std::vector<analyses::ExperimentComparison> comparisons = compared_pairs(given, arguments.pairing, options);
  given.tell();
  if (!arguments.out.empty())
    tell_written(reports::write_experiment_page(comparisons, given.sentences(), arguments.out), arguments.out,
                 "compare");
  if (!global.json) {
    print_result("{}", reports::print_comparisons(comparisons));
    return;
  }
  OrderedJson json = {{"comparisons", OrderedJson::array()}};
  for (const analyses::ExperimentComparison& comparison : comparisons)
    json["comparisons"].push_back(to_json(comparison));
  for (const analyses::GainDecision& row : analyses::decide(comparisons))
    json["comparisons"][row.comparison]["scores"][comparisons[row.comparison].scores[row.metric].score.name]
        ["decision"] = to_json(row);
  print_result("{}\n", json_text(json, 2));
}

constexpr std::string_view experiment_compare_options[] = {"--margin"};

}  // namespace

bool is_experiment_run(const fs::path& path) {
  return runfile::is_run_of(path, runfile::RunKind::experiment);
}

const RunCommands experiment_commands = {.kind = runfile::RunKind::experiment,
                                         .check = check_experiment_run,
                                         .check_training = check_trained,
                                         .report = report_experiment,
                                         .compare = compare_experiments,
                                         .compare_options = experiment_compare_options};

}  // namespace gainlens::cli
