// What the commands for every kind of run do with recommender runs.
#include "analyses/recommender_results.h"
#include "cli/check_parts.h"
#include "cli/given_run.h"
#include "cli/run_kinds.h"
#include "core/check.h"
#include "core/json.h"
#include "experiment/result_file.h"
#include "recommend/finished_seeds.h"
#include "recommend/recommender_files.h"
#include "recommend/settings.h"
#include "reports/recommend/recommend_report.h"

#include <fmt/ranges.h>

#include <cstddef>

namespace gainlens::cli {
namespace {

namespace fs = std::filesystem;

std::vector<analyses::CheckResult> check_recommend_run(const fs::path& path) {
  const runfile::RecommendRun run = recommend::read_run(path);
  analyses::CheckedRecommenders checked(run);
  note_files(checked, [&] {
    ProvenFiles found;
    found.unproven = recommend::read_proven_run(path, &found.faults).unproven;
    return found;
  });
  return analyses::run_checks(analyses::recommender_checks(), checked);
}

/// A training alone, as a run of one arm and one seed.
std::vector<analyses::CheckResult> check_recommender(const GivenTraining& training) {
  recommend::check_request_of(training.run);
  runfile::RecommendRun run;
  run.arms = {training.label};
  run.seeds = {training.seed};
  run.results.resize(1);
  if (recommend::is_recommender(training.folder))
    run.item_train_count.resize(static_cast<std::size_t>(recommend::catalogue_size(training.folder)));
  analyses::CheckedRecommenders checked(run);
  checked.alone = true;
  const fs::path file = training.folder / experiment::result_name;
  if (fs::exists(file)) {
    run.results.front() = experiment::load_result(file, training.label, training.seed).result;
    note_files(checked, [&] {
      ProvenFiles found;
      recommend::examine_seed(training.folder, training.label, training.seed, found.faults);
      return found;
    });
  } else {
    checked.unproven = "nothing to compare yet";
  }
  return analyses::run_checks(analyses::recommender_checks(), checked);
}

void report_recommender(const ReportArguments& arguments, const GlobalOptions& global) {
  const fs::path out = folder_to_write(arguments), path = arguments.runs.front();
  analyses::RecommenderOptions options;
  options.resampling.seed = options.resamples.seed = global.seed;
  CHECK(!arguments.paper || !arguments.paper->empty(),
        "--paper: needs the name of a data set, since {} is a recommender run", printable(path.string()));
  if (arguments.paper) options.paper = analyses::parse_paper_data_set(*arguments.paper);
  const auto run = given_recommend_run(path);
  const recommend::BackboneKind& backbone = recommend::backbone_named(run->backbone(), printable(path.string()));
  const Json preset =
      Json(recommend::to_json(recommend::settings_of(recommend::preset("paper", backbone), "--preset", backbone)));
  const reports::TrainedRun trained{printable(folder_of_run(path).filename().string()),
                                    analyses::recommender_results(path, run, options), preset};
  finish_report(reports::write_recommend_report(trained, out, writing_of(arguments)), out, global.json);
}

void refuse_several_recommenders(const std::vector<std::string>& own, const std::vector<std::string>& others) {
  CHECK(others.empty(),
        "report: {} is a recommender run, and {} is not; give one recommender run alone, or sweeps alone", own.front(),
        others.front());
  throw_invalid("report: {} are recommender runs; compare them: gainlens compare {} --out FOLDER", fmt::join(own, ", "),
                fmt::join(own, " "));
}

constexpr std::string_view recommender_report_options[] = {"--paper"};

}  // namespace

extern const RunCommands recommender_commands;
const RunCommands recommender_commands = {.kind = runfile::RunKind::recommenders,
                                          .check = check_recommend_run,
                                          .check_training = check_recommender,
                                          .report = report_recommender,
                                          .report_options = recommender_report_options,
                                          .refuse_several = refuse_several_recommenders,
                                          .compare = compare_recommenders,
                                          .compare_options = options_of_recommenders};

}  // namespace gainlens::cli
