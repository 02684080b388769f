// What the commands for every kind of run do with recommender runs.
#include "analyses/recommender_results.h"
#include "cli/check_parts.h"
#include "cli/given_run.h"
#include "cli/run_kinds.h"
#include "core/check.h"
#include "core/json.h"
#include "experiment/job.h"
#include "experiment/result_file.h"
#include "recommend/finished_seeds.h"
#include "recommend/recommender_files.h"
#include "recommend/settings.h"
#include "reports/recommend/recommend_report.h"

#include <fmt/ranges.h>

#include <cstdint>

namespace gainlens::cli {
namespace {

namespace fs = std::filesystem;

std::vector<analyses::CheckResult> check_recommend_run(const fs::path& path) {
  const runfile::RecommendRun run = recommend::read_run(path);
  analyses::CheckedRecommenders checked(run);
  note_files(checked, [&] { return recommend::read_proven_run(path).unproven; });
  return analyses::run_checks(analyses::recommender_checks(), checked);
}

/// The seed of the folder ARM/seed-N of a recommender run; empty: it is none.
std::optional<std::uint64_t> seed_of(const fs::path& folder) {
  return recommend::run_of_checkpoint(folder) ? experiment::seed_of_folder(folder.filename().string()) : std::nullopt;
}

/// A training alone, as a run of one arm and one seed.
std::vector<analyses::CheckResult> check_training(const fs::path& folder, std::uint64_t seed) {
  recommend::check_request_of(*recommend::run_of_checkpoint(folder));
  const std::string arm = recommend::label_of_folder(folder);
  runfile::RecommendRun run;
  run.arms = {arm};
  run.seeds = {seed};
  run.results.resize(1);
  if (recommend::is_recommender(folder))
    run.item_train_count.resize(static_cast<std::size_t>(recommend::catalogue_size(folder)));
  analyses::CheckedRecommenders checked(run);
  checked.alone = true;
  const fs::path file = folder / experiment::result_name;
  if (fs::exists(file)) {
    run.results.front() = experiment::load_result(file, arm, seed).result;
    note_files(checked, [&] {
      recommend::prove_seed(folder, arm, seed);
      return std::string();
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

std::optional<std::vector<analyses::CheckResult>> check_training_alone(const fs::path& path) {
  const fs::path folder = fs::weakly_canonical(path);
  const auto seed = seed_of(folder);
  return seed ? std::optional(check_training(folder, *seed)) : std::nullopt;
}

extern const RunCommands recommender_commands;
const RunCommands recommender_commands = {.kind = runfile::RunKind::recommenders,
                                          .check = check_recommend_run,
                                          .report = report_recommender,
                                          .report_options = recommender_report_options,
                                          .refuse_several = refuse_several_recommenders,
                                          .compare = compare_recommenders,
                                          .compare_options = options_of_recommenders};

}  // namespace gainlens::cli
