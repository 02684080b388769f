#include "cli/inspect_parts.h"

#include "core/check.h"
#include "core/counted.h"
#include "core/number_ranges.h"
#include "core/ranking_metrics.h"
#include "experiment/job.h"
#include "experiment/proven_run.h"
#include "recommend/finished_seeds.h"
#include "runfile/attention_run.h"
#include "runfile/folder_lock.h"
#include "runfile/run_file_name.h"
#include "runfile/run_proof.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace gainlens::cli {
namespace {

/// Adds the arms, seeds and metrics of a run of trainings, and how many of each arm are finished.
/// @returns  the number of finished trainings
std::int64_t add_trainings(const runfile::TrainedRun& run, const std::vector<std::string>& metrics,
                           Findings& findings) {
  findings.add("arms", fmt::format("{}", fmt::join(run.arms, ", ")), run.arms);
  findings.add("seeds", number_ranges(run.seeds, " to "), run.seeds);
  findings.add("metrics", fmt::format("{}", fmt::join(metrics, ", ")), metrics);
  std::int64_t finished = 0;
  for (std::size_t arm = 0; arm < run.arms.size(); ++arm) {
    std::int64_t arm_finished = 0;
    for (std::size_t seed = 0; seed < run.seeds.size(); ++seed) arm_finished += run.result(arm, seed) ? 1 : 0;
    findings.add_line(run.arms[arm], fmt::format("{} of {} finished", arm_finished, counted(run.seeds.size(), "seed")));
    finished += arm_finished;
  }
  findings.add("finished", fmt::format("{} of {}", finished, counted(run.results.size(), "training")), finished);
  return finished;
}

/// Adds which trainings of a run without run.h5 are finished.
/// @param prove  proves the files of a training that has a result. @throws InvalidArgument  they have changed
/// @returns  whether there is no run.h5
/// @throws InvalidArgument  the run is being written; no training is finished; as `prove`
bool add_begun_trainings(const std::filesystem::path& run, const std::function<void(const experiment::Job&)>& prove,
                         Findings& findings) {
  if (!std::filesystem::is_directory(run) || std::filesystem::exists(run / runfile::run_file_name)) return false;
  runfile::check_not_being_written(run);
  const experiment::AskedJobs asked = experiment::asked_jobs(run);
  const auto is_finished = [](const experiment::Job& job) {
    return std::filesystem::exists(job.folder / experiment::result_name);
  };
  std::map<std::string, std::vector<bool>> arms;
  for (const experiment::Job& job : asked.jobs) arms[job.label()].push_back(is_finished(job));
  for (const auto& [label, finished] : arms)
    findings.add_line(
        label, fmt::format("{} of {} finished", std::ranges::count(finished, true), counted(finished.size(), "seed")));
  const auto finished = std::ranges::count_if(asked.jobs, is_finished);
  findings.add("finished",
               fmt::format("{} of {}{}; run.h5 is written when its gainlens train command ends, which continues if "
                           "it is repeated",
                           finished, counted(asked.jobs.size(), "training"), asked.are_known ? "" : " that have begun"),
               finished);
  findings.add_json("asked", asked.are_known ? Json(asked.jobs.size()) : Json(nullptr));
  CHECK(finished > 0, "{}: no training is finished; repeat its gainlens train command, which continues",
        printable(run.string()));
  for (const experiment::Job& job : asked.jobs)
    if (is_finished(job)) prove(job);
  findings.add("checksums", "the files of every finished training are as it wrote them", true);
  return true;
}

/// Says whether run.h5, which was read, has been compared with a checksum.
void add_checksum(const std::filesystem::path& path, Findings& findings) {
  const std::filesystem::path file = std::filesystem::is_directory(path) ? path / runfile::run_file_name : path;
  const bool compared = std::filesystem::exists(runfile::checksum_file_of(file));
  findings.add("checksums",
               compared ? "run.h5 is as it was written (sha256)" : "there is no run.h5.sha256 beside run.h5", compared);
}

void inspect_recommend_run(const std::filesystem::path& path, Findings& findings) {
  findings.add("kind", "recommender run");
  const auto prove = [](const experiment::Job& job) { recommend::prove_seed(job.folder, job.label(), job.seed); };
  if (add_begun_trainings(path, prove, findings)) return;
  const recommend::ProvenRun proven = recommend::read_proven_run(path);
  const runfile::RecommendRun& run = proven.run;
  findings.add("backbone", run.backbone());
  const Json& data = run.request.at("data");
  const std::int64_t users = std::ssize(run.units), items = std::ssize(run.item_train_count);
  findings.add("data set",
               fmt::format("{} ({}, {}, {})", printable(run.data_name()), counted(users, "user"),
                           counted(items, "item"), counted(data.at("interactions").get<std::int64_t>(), "interaction")),
               data);
  findings.add("split checksum", printable(run.split()), run.split());
  std::vector<std::string> metrics;
  for (const RankingMetric& metric : ranking_metrics()) metrics.push_back(metric.name());
  const std::int64_t finished = add_trainings(run, metrics, findings);
  std::vector<std::string> diverged;
  for (std::size_t i = 0; i < run.results.size(); ++i) {
    const std::string why = run.results[i] ? divergence_of(*run.results[i], items) : "";
    if (!why.empty())
      diverged.push_back(
          fmt::format("{} seed {}: {}", run.arms[i / run.seeds.size()], run.seeds[i % run.seeds.size()], why));
  }
  if (!diverged.empty()) findings.add("diverged", fmt::format("{}", fmt::join(diverged, "; ")), diverged);
  findings.add("checksums",
               proven.unproven.empty() ? "the files of every training are as it wrote them" : proven.unproven,
               proven.compared);
  CHECK(finished > 0, "{}: no seed is finished; repeat its gainlens train recommend command, which continues",
        printable(path.string()));
}

void inspect_experiment_run(const std::filesystem::path& path, Findings& findings) {
  findings.add("kind", "run of an experiment");
  const auto prove = [](const experiment::Job& job) { experiment::prove_result(job.folder, job.label(), job.seed); };
  if (add_begun_trainings(path, prove, findings)) return;
  const runfile::ExperimentRun run = runfile::read_experiment_run(path);
  findings.add("data set", fmt::format("{} ({})", printable(run.data_name()), counted(run.units.size(), run.unit())),
               run.request.at("data"));
  findings.add("split checksum", printable(run.split()), run.split());
  std::vector<std::string> scores;
  for (const UnitScore& score : run.unit_scores) scores.push_back(score.name);
  const std::int64_t finished = add_trainings(run, scores, findings);
  add_checksum(path, findings);
  CHECK(finished > 0, "{}: no training is finished; repeat the command that trains, which continues",
        printable(path.string()));
}

void inspect_attention_run(const std::filesystem::path& path, Findings& findings) {
  const runfile::AttentionRun run = runfile::read_attention_run(path);
  findings.add("kind", "sweep of recommenders");
  findings.add("backbone", printable(run.backbone()), run.backbone());
  findings.add("data set", fmt::format("{} ({})", printable(run.data_name()), counted(run.units.size(), "user")),
               run.request.at("data"));
  findings.add("split checksum", printable(run.split()), run.split());
  std::int64_t layers = 0, heads = 0;
  for (const auto& swept : run.swept) {
    layers = std::max(layers, swept ? swept->layers : 0);
    heads = std::max(heads, swept ? swept->heads : 0);
  }
  findings.add("heads", fmt::format("{} of {}", counted(layers, "layer"), counted(heads, "head")),
               {{"layers", layers}, {"heads", heads}});
  std::vector<std::string> numbers(std::size(attention_numbers));
  std::ranges::transform(attention_numbers, numbers.begin(),
                         [](const auto& number) { return std::string(number.name); });
  add_trainings(run, numbers, findings);
  add_checksum(path, findings);
}

}  // namespace

const RunInspection recommenders_inspection = inspect_recommend_run, experiment_inspection = inspect_experiment_run,
                    recommender_sweep_inspection = inspect_attention_run;

}  // namespace gainlens::cli
