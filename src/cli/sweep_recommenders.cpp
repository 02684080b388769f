#include "cli/sweep_recommenders.h"

#include "analyses/attention_evidence.h"
#include "cli/command_options.h"
#include "cli/filtered_runs.h"
#include "cli/given_run.h"
#include "cli/run_kinds.h"
#include "core/check.h"
#include "core/console.h"
#include "core/counted.h"
#include "core/json.h"
#include "core/nearest.h"
#include "core/progress.h"
#include "core/sha256.h"
#include "experiment/job.h"
#include "formats/hub_cache.h"
#include "recommend/arm.h"
#include "recommend/finished_seeds.h"
#include "recommend/recommender_files.h"
#include "recommend/user_attention.h"
#include "reports/attention/attention_report.h"
#include "reports/terminal/attention_terminal.h"
#include "runfile/attention_run.h"
#include "runfile/run_file_name.h"
#include "runfile/run_kind.h"
#include "runfile/run_proof.h"

#include <ATen/Parallel.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

namespace gainlens::cli {
namespace {

namespace fs = std::filesystem;

/// Options of a sweep that a recommender has no use for.
constexpr const char* language_options =
    "--text --tokens --bos --lengths --samples --nested --spread --dtype --statistics --kernel --estimator "
    "--score-noise --no-nll --per-query --layers --stop-at-layer --stream-weights --depth-precision "
    "--allow-extrapolation --ignore-config-key";

/// What is swept: the trainings of a run, or one of them.
struct Swept {
  OpenedRun opened;
  std::vector<std::string> arms;
  std::optional<std::uint64_t> seed;  ///< the only one

  std::vector<std::uint64_t> seeds(const std::string& arm) const {
    return seed ? std::vector<std::uint64_t>{*seed} : finished_seeds(opened, arm);
  }
};

bool has_attention(const std::string& label) {
  return recommend::find_arm(runfile::arm_of(label)) != nullptr;
}

/// The arms that are asked for, or all with a finished training; baselines have no attention.
std::vector<std::string> arms_to_sweep(const OpenedRun& opened, const std::vector<std::string>& asked) {
  const std::vector<std::string>& all = opened.run->arms;
  std::vector<std::string> found;
  for (const std::string& arm : asked.empty() ? all : asked) {
    CHECK(std::ranges::count(all, arm) == 1, "{}: has no arm '{}', but {}{}", opened.shown(), printable(arm, 60),
          fmt::join(all, ", "), did_you_mean(arm, all));
    const bool attends = has_attention(arm), finished = attends && !finished_seeds(opened, arm).empty();
    CHECK(asked.empty() || attends, "{}: arm {} is no model with attention", opened.shown(), printable(arm, 60));
    CHECK(asked.empty() || finished, "{}: no seed of arm {} is finished", opened.shown(), printable(arm, 60));
    if (finished) found.push_back(arm);
  }
  CHECK(!found.empty(), "{}: has no finished training of a model with attention", opened.shown());
  return found;
}

/// A run, or the run of a checkpoint with its arm and seed alone.
Swept open_swept(const RecommenderSweepArguments& arguments) {
  const fs::path path = arguments.model;
  if (!recommend::is_recommender(path)) {
    Swept swept{open_filtered_run(path), {}, {}};
    swept.arms = arms_to_sweep(swept.opened, arguments.arms);
    return swept;
  }
  const std::string shown = printable(path.string());
  const auto run = recommend::run_of_checkpoint(fs::weakly_canonical(path));
  CHECK(run, "{}: lies in no run of gainlens train recommend; give the folder of the run, or ARM/seed-N in it", shown);
  CHECK(arguments.arms.empty(), "--arm: {} is one training alone; leave the option out", shown);
  const std::string arm = recommend::label_of_folder(fs::weakly_canonical(path));
  Swept swept{
      open_filtered_run(*run), {arm}, experiment::seed_of_folder(fs::weakly_canonical(path).filename().string())};
  const std::vector<std::uint64_t> finished = std::ranges::count(swept.opened.run->arms, arm) == 1
                                                  ? finished_seeds(swept.opened, arm)
                                                  : std::vector<std::uint64_t>();
  CHECK(swept.seed && std::ranges::count(finished, *swept.seed) == 1,
        "{}: its run.h5 does not hold this training; repeat its gainlens train recommend command, which continues",
        shown);
  return swept;
}

/// What determines the numbers.
Json request_of(const Swept& swept) {
  Json weights = Json::object();
  for (const std::string& arm : swept.arms) {
    for (const std::uint64_t seed : swept.seeds(arm)) {
      const std::string training = fmt::format("{}/seed-{}", arm, seed);
      weights[training] = sha256_file(swept.opened.folder / training / "model.safetensors");
    }
  }
  const Json& stored = swept.opened.run->request;
  return {{"backbone", stored.at("backbone")},
          {"data", stored.at("data")},
          {"weights", weights},
          {"kalman_gain", {{"estimator", "reml"}, {"prior_strength", 1}, {"prior_precision", 1}}},
          {"numbers_version", 1}};
}

/// The run without its numbers.
runfile::AttentionRun empty_run(const Swept& swept, const data::LeaveOneOut& split) {
  const runfile::RecommendRun& of = *swept.opened.run;
  runfile::AttentionRun run;
  run.request = request_of(swept);
  run.arms = swept.arms;
  for (const std::uint64_t seed : of.seeds) {
    if (std::ranges::any_of(swept.arms,
                            [&](const std::string& arm) { return std::ranges::count(swept.seeds(arm), seed) > 0; }))
      run.seeds.push_back(seed);
  }
  run.units = of.units;
  run.users = {of.target, of.history_length, of.training_length, of.item_train_count};
  for (std::int64_t user = 0; user < split.users(); ++user)
    run.last_item.push_back(split.history(user, data::HeldOut::test).items.back());
  run.results.resize(run.arms.size() * run.seeds.size());
  run.swept.resize(run.results.size());
  return run;
}

/// Whether the folder holds this sweep already.
/// @throws InvalidArgument  it holds another run, or a damaged one
bool is_complete(const fs::path& out, const Json& request) {
  check_can_be_run_folder(out);
  if (!runfile::is_run_of(out, runfile::RunKind::recommender_sweep)) {
    // A damaged file may not even show what it was.
    if (const fs::path file = out / runfile::run_file_name; fs::exists(file)) runfile::prove_by_neighbour(file);
    check_holds_no_run(out);
    return false;
  }
  CHECK(runfile::read_attention_run(out).request == request,
        "--out: {} holds the sweep of other models, or of models that have changed since; choose another folder",
        printable(out.string()));
  return true;
}

void print(const runfile::AttentionRun& run, const fs::path& file, bool computed, const GlobalOptions& global) {
  analyses::AttentionOptions options;
  options.seed = global.seed;
  options.threads = static_cast<std::size_t>(std::max(at::get_num_threads(), 1));
  const std::vector<analyses::AttentionReading> readings = analyses::attention_evidence(run, options);
  if (global.json) return print_arms(readings, true, reports::print_attention);
  const auto models = std::ranges::count_if(run.swept, [](const auto& swept) { return swept.has_value(); });
  print_result("{}: {}\n\n", printable(file.string()),
               computed ? fmt::format("{} of {} swept", counted(models, "model"), counted(run.arms.size(), "arm"))
                        : "complete, nothing to do");
  print_arms(readings, false, reports::print_attention);
}

void report_swept_recommenders(const ReportArguments& arguments, const GlobalOptions& global) {
  const fs::path out = folder_to_write(arguments);
  analyses::AttentionOptions options;
  options.seed = global.seed;
  options.threads = static_cast<std::size_t>(std::max(at::get_num_threads(), 1));
  const runfile::AttentionRun run = runfile::read_attention_run(arguments.runs.front());
  finish_report(
      reports::write_attention_report(run, analyses::attention_evidence(run, options), out, writing_of(arguments)), out,
      global.json);
}

}  // namespace

const RunCommands recommender_sweep_commands = {.kind = runfile::RunKind::recommender_sweep,
                                                .report = report_swept_recommenders};

void add_recommender_sweep_options(CLI::App& command, RecommenderSweepArguments& arguments) {
  command.add_option("--data", arguments.data.path,
                     "Of recommenders, in the place of --text: the interactions that they were trained on, as for\n"
                     "gainlens train recommend");
  add_interaction_policy(command, arguments.data.policy, "Of --data: ");
  add_name_list(command, "--arm", arguments.arms,
                "Of recommenders: arms, separated by commas (default: every arm with a finished training)");
}

void refuse_recommender_sweep_options(const CLI::App& command, const RecommenderSweepArguments& arguments) {
  for (const char* option : {"--data", "--arm"}) {
    if (command.count(option) == 0) continue;
    std::error_code error;
    CHECK(fs::exists(formats::locate_checkpoint(arguments.model), error), "{}: no such folder",
          printable(arguments.model));
    throw_invalid("{}: is for recommenders, and {} is none; leave it out", option, printable(arguments.model));
  }
  refuse_interaction_policy(command, "is an option of --data");
}

bool is_recommender_sweep(const std::string& model) {
  std::error_code ignored;
  return fs::is_directory(model, ignored) &&
         (recommend::is_recommender(model) || runfile::is_run_of(model, runfile::RunKind::recommenders));
}

void sweep_recommenders(const CLI::App& command, const RecommenderSweepArguments& arguments,
                        const GlobalOptions& global) {
  std::istringstream options(language_options);
  for (std::string option; options >> option;)
    CHECK(command.count(option) == 0, "{}: is for language models, and {} is a recommender; leave it out", option,
          printable(arguments.model));
  CHECK(!arguments.data.path.empty(),
        "--data: is missing; give the interactions that {} was trained on: its histories are what the heads attend to",
        printable(arguments.model));
  const Swept swept = open_swept(arguments);
  const data::LeaveOneOut split(arguments.data.read());
  check_same_split(swept.opened, split, arguments.data);
  runfile::AttentionRun run = empty_run(swept, split);
  const fs::path out = arguments.out, file = out / runfile::run_file_name;
  const bool complete = is_complete(out, run.request);
  if (complete) {
    run = runfile::read_attention_run(out);
  } else {
    fs::create_directories(out);  // what cannot be written is known before the work
    double models = 0;
    for (const std::string& arm : swept.arms) models += static_cast<double>(swept.seeds(arm).size());
    Progress progress("sweep", models, "users", global.quiet);
    for (std::size_t arm = 0; arm < run.arms.size(); ++arm) {
      for (const std::uint64_t seed : swept.seeds(run.arms[arm])) {
        const SeedModel model = open_seed(swept.opened, run.arms[arm], seed, split, arguments.data);
        const auto place = static_cast<std::size_t>(std::ranges::find(run.seeds, seed) - run.seeds.begin());
        run.results[arm * run.seeds.size() + place].emplace();
        run.swept[arm * run.seeds.size() + place] =
            recommend::user_attention(*model.model, split, data::HeldOut::test, model.where);
        progress.advance(1, static_cast<double>(split.users()), fmt::format("{} seed {}", run.arms[arm], seed));
      }
    }
    progress.finish();
    runfile::publish_run_file(
        out, [&](const fs::path& temporary) { runfile::write_attention_run(temporary, run, GAINLENS_VERSION); });
    run = runfile::read_attention_run(out);  // what is printed is what a report of the file says
  }
  print(run, file, !complete, global);
}

}  // namespace gainlens::cli
