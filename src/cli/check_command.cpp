#include "cli/commands.h"

#include "analyses/checks/sweep_checks.h"
#include "analyses/checks/training_checks.h"
#include "analyses/checks/unit_checks.h"
#include "analyses/sink_keys.h"
#include "cli/given_run.h"
#include "core/check.h"
#include "core/console.h"
#include "core/counted.h"
#include "core/json.h"
#include "experiment/job.h"
#include "experiment/proven_run.h"
#include "experiment/result_file.h"
#include "recommend/finished_seeds.h"
#include "recommend/recommender_files.h"
#include "reports/terminal/checks_terminal.h"
#include "runfile/experiment_run.h"
#include "runfile/recommend_run.h"
#include "runfile/run_kind.h"

#include <fmt/ranges.h>

#include <functional>
#include <memory>

namespace gainlens::cli {
namespace {

namespace fs = std::filesystem;

using Results = std::vector<analyses::CheckResult>;

Results check_sweep(const fs::path& path) {
  const DoubtfulRun found = open_doubtful_run(path);
  // Refuses sinks that cannot be, as every command does that shows them.
  if (analyses::has_sink_keys(found.run.reader)) analyses::sink_keys(found.run.reader);
  return analyses::run_checks(analyses::sweep_checks(),
                              analyses::CheckedSweep{found.run.reader, found.run.proof, found.changed});
}

/// Notes what the files of trainings say.
/// @param proof  returns what could not be proven, and throws what speaks against them
void note_files(analyses::CheckedTrainings& checked, const std::function<std::string()>& proof) {
  try {
    checked.unproven = proof();
  } catch (const InvalidArgument& error) {
    checked.changed = error.what();
  }
}

Results check_recommend_run(const fs::path& path) {
  const runfile::RecommendRun run = recommend::read_run(path);
  analyses::CheckedRecommenders checked(run);
  note_files(checked, [&] { return recommend::read_proven_run(path).unproven; });
  return analyses::run_checks(analyses::recommender_checks(), checked);
}

Results check_experiment_run(const fs::path& path) {
  const runfile::ExperimentRun run = runfile::read_experiment_run(path);
  analyses::CheckedExperiment checked(run);
  note_files(checked, [&] {
    const auto proven = experiment::read_proven_run(path, experiment::TrainingProof::files);
    return fmt::format("{}", fmt::join(proven.unproven, " "));
  });
  return analyses::run_checks(analyses::experiment_checks(), checked);
}

/// The seed of the folder ARM/seed-N of a recommender run; empty: it is none.
std::optional<std::uint64_t> seed_of(const fs::path& folder) {
  return recommend::run_of_checkpoint(folder) ? experiment::seed_of_folder(folder.filename().string()) : std::nullopt;
}

/// A training alone, as a run of one arm and one seed.
Results check_training(const fs::path& folder, std::uint64_t seed) {
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

Results checks_of(const fs::path& path) {
  CHECK(fs::exists(path), "{}: no such file or folder", printable(path.string()));
  for (const auto& [kind, read] : {std::pair(runfile::RunKind::gate_arms, analyses::read_checked_gate_arms),
                                   std::pair(runfile::RunKind::interventions, analyses::read_checked_interventions),
                                   std::pair(runfile::RunKind::patching, analyses::read_checked_patches)}) {
    if (runfile::is_run_of(path, {kind})) return analyses::run_checks(analyses::unit_checks(), read(path));
  }
  if (runfile::is_run_of(path, {runfile::RunKind::recommenders})) return check_recommend_run(path);
  if (runfile::is_run_of(path, {runfile::RunKind::experiment})) return check_experiment_run(path);
  const fs::path folder = fs::weakly_canonical(path);
  if (const auto seed = seed_of(folder)) return check_training(folder, *seed);
  if (runfile::is_run_of(path, {runfile::RunKind::language_training}))
    return analyses::run_checks(analyses::language_checks(), analyses::read_language_training(path));
  return check_sweep(path);
}

void check_and_print(const std::string& path, const GlobalOptions& global) {
  const Results results = checks_of(path);
  if (global.json) {
    print_result("{}\n", json_text(analyses::to_json(results), 2));
  } else {
    print_result("{}", reports::print_checks(results));
  }
  flush_results();  // a list that is lost is the worse news
  if (const std::size_t found = analyses::count_findings(results); found > 0)
    throw_run_failed("{}: {} of {} found something", printable(path), found, counted(results.size(), "check"));
}

}  // namespace

void add_check(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* command = add_subcommand(
      app, subcommand_named("check"), "gainlens check RUN",
      "One line for each check of a fixed list: satisfactory, or what is wrong, how much, and what to do. Nothing is\n"
      "changed. The report shows the same list. docs/analyses/check.md explains each check.\n"
      "Exit status: 0 all is satisfactory; 1 something was found; 2 the run cannot be read.");
  auto path = std::make_shared<std::string>();
  command
      ->add_option(
          "run", *path,
          "Run folder or run.h5 of sweep, train recommend or train finetune, folder ARM/seed-N of one training "
          "of recommenders, folder of train language-model, or run folder of intervene, inactive-heads or "
          "gate-arms")
      ->required();
  command->callback([path, &global, &action] { action = [path, &global] { check_and_print(*path, global); }; });
}

}  // namespace gainlens::cli
