#include "recommend/train_recommend.h"

#include "core/atomic_file.h"
#include "core/check.h"
#include "core/nearest.h"
#include "core/progress.h"
#include "core/ranking_metrics.h"
#include "core/thread_count.h"
#include "recommend/baselines.h"
#include "recommend/recommend_task.h"
#include "recommend/sasrec_checkpoint.h"
#include "recommend/seed_result.h"
#include "recommend/training_memory.h"
#include "runfile/recommend_run.h"
#include "runfile/run_file_name.h"
#include "training/trainer.h"
#include "training/training_folder.h"

#include <ATen/Parallel.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <set>
#include <thread>

namespace gainlens::recommend {
namespace {

/// Version of the training procedure, part of a request. To be raised when the same request would give other weights.
constexpr int training_version = 1;

constexpr std::string_view plain_arm = "plain";
constexpr const char* result_name = "result.safetensors";
constexpr const char* request_name = "request.json";

/// One arm with one seed.
struct Job {
  std::string arm;
  std::uint64_t seed;
  std::filesystem::path folder;
};

std::vector<Job> jobs_of(const RecommendRequest& request) {
  std::vector<Job> jobs;
  for (const std::string& arm : request.arms) {
    for (std::int64_t i = 0; i < request.seeds; ++i) {
      const std::uint64_t seed = request.seed + static_cast<std::uint64_t>(i);
      jobs.push_back({arm, seed, request.out / arm / fmt::format("seed-{}", seed)});
    }
  }
  return jobs;
}

std::map<std::string, double> metrics_of(const std::vector<float>& ranks) {
  std::map<std::string, double> found;
  for (const RankingMetric& metric : ranking_metrics()) found[metric.name()] = mean_of(metric, ranks);
  return found;
}

training::TrainerOptions trainer_options(const Settings& settings, const RecommendTask& task) {
  const std::int64_t epoch = task.steps_per_epoch();
  training::TrainerOptions options;
  options.steps = settings.epochs * epoch;
  options.schedule.decay = training::Decay::constant;
  options.optimizer.learning_rate = settings.learning_rate;
  options.optimizer.beta2 = settings.beta2;
  options.max_gradient_norm = settings.max_gradient_norm;
  options.evaluate_every = epoch;
  options.save_every = settings.save_every * epoch;
  options.patience = settings.patience;
  options.quiet = true;  // the progress of all trainings is shown together
  return options;
}

/// Shows the progress of several trainings on one line.
class SharedProgress {
 public:
  SharedProgress(std::int64_t epochs, bool quiet)
      : progress_("train recommend", static_cast<double>(epochs), "epochs",
                  quiet ? Progress::Style::quiet : Progress::Style::automatic) {}

  void advance(std::int64_t epochs, const std::string& label) {
    const std::lock_guard lock(mutex_);
    progress_.advance(static_cast<double>(epochs), static_cast<double>(epochs), label);
  }

 private:
  std::mutex mutex_;
  Progress progress_;
};

/// Trains one seed to its end, or continues it, and evaluates the best epoch on the test items.
SeedResult train_job(const Job& job, const RecommendRequest& request, const data::LeaveOneOut& split,
                     const Json& document, SharedProgress& progress) {
  const std::string item_names = item_names_checksum(split.interactions());
  RecommendTask task(request.settings, split, job.seed, [&](const SasRec& model) {
    save_sasrec(job.folder, model.config(), model.weights(), item_names);
  });
  Json own = document;
  own["arm"] = job.arm;
  own["seed"] = job.seed;
  const training::TrainingFolder folder(job.folder / "training", own);
  training::TrainerOptions options = trainer_options(request.settings, task);
  std::int64_t shown = 0;
  options.evaluated = [&](const training::Evaluation& point) {
    ++shown;
    progress.advance(
        1, fmt::format("{} seed {}, epoch {}, loss {:.4f}, {}", job.arm, job.seed, point.step / task.steps_per_epoch(),
                       point.training_loss, task.describe(point.validation_loss)));
  };
  const training::TrainingOutcome outcome = training::train(task, folder, options);
  progress.advance(request.settings.epochs - shown, fmt::format("{} seed {} done", job.arm, job.seed));

  SeedResult result;
  result.best_epoch = outcome.best_step / task.steps_per_epoch();
  for (const training::Evaluation& point : outcome.history)
    result.curve["training_loss"].push_back(point.training_loss);
  for (std::size_t i = 0; i < ranking_metrics().size(); ++i)
    result.curve[ranking_metrics()[i].name()] = task.validation()[i];
  SasRecCheckpoint best = load_sasrec(job.folder, CheckpointLayout::gainlens);
  const SasRec model(best.config, std::move(best.weights));
  SasRecScorer scorer(model);
  result.rank = rank_all(scorer, split, data::HeldOut::test);
  result.test = metrics_of(result.rank);
  return result;
}

SeedResult baseline_result(const Job& job, const data::LeaveOneOut& split) {
  SeedResult result;
  result.rank = rank_all(*make_baseline(job.arm, split), split, data::HeldOut::test);
  result.test = metrics_of(result.rank);
  return result;
}

SeedOutcome outcome_of(const Job& job, const SeedResult& result, double seconds) {
  SeedOutcome outcome{job.arm, job.seed, result.test, {}, result.best_epoch, 0, seconds};
  for (const auto& [name, values] : result.curve) {
    outcome.epochs = std::ssize(values);
    if (result.best_epoch > 0) outcome.validation[name] = values.at(static_cast<std::size_t>(result.best_epoch) - 1);
  }
  return outcome;
}

/// Does one job, unless it has been done.
SeedOutcome run_job(const Job& job, const RecommendRequest& request, const data::LeaveOneOut& split,
                    const Json& document, SharedProgress& progress) {
  const auto start = std::chrono::steady_clock::now();
  const std::filesystem::path file = job.folder / result_name;
  if (std::filesystem::exists(file)) {
    progress.advance(request.settings.epochs, fmt::format("{} seed {} was done before", job.arm, job.seed));
    return outcome_of(job, load_seed_result(file), 0);
  }
  ensure_writable_folder(job.folder);
  const SeedResult result =
      job.arm == plain_arm ? train_job(job, request, split, document, progress) : baseline_result(job, split);
  save_seed_result(file, result);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  return outcome_of(job, result, taken.count());
}

/// How the trainings share the threads. The last bits of a training depend on its threads, so a run that exists keeps
/// its number, whatever this call could give.
struct Sharing {
  std::int64_t seeds_at_once, threads_of_seed;
};

Sharing share_threads(const RecommendRequest& request, std::int64_t jobs) {
  const std::int64_t threads = std::max<std::int64_t>(request.threads, 1);
  const std::filesystem::path file = request.out / request_name;
  if (std::filesystem::exists(file)) {
    const Json stored = read_json_file(file);
    if (stored.is_object() && stored.contains("threads") && stored["threads"].is_number_unsigned()) {
      const auto of_seed = std::clamp<std::int64_t>(stored["threads"].get<std::int64_t>(), 1, most_threads());
      const std::int64_t most = std::clamp<std::int64_t>(threads / of_seed, 1, jobs);
      return {request.seeds_at_once > 0 ? std::min(request.seeds_at_once, jobs) : most, of_seed};
    }
  }
  const std::int64_t most = std::min(threads, jobs);
  const std::int64_t at_once = request.seeds_at_once > 0 ? std::min(request.seeds_at_once, most) : most;
  return {at_once, std::max<std::int64_t>(1, threads / at_once)};
}

/// Refuses another request in the folder. Arms and number of seeds may differ.
void check_request(const std::filesystem::path& out, const Json& document) {
  const std::filesystem::path file = out / request_name;
  if (std::filesystem::exists(file)) {
    training::check_same_request(read_json_file(file), document, out);
  } else {
    write_file_atomically(file, document.dump(2) + "\n");
  }
}

}  // namespace

const std::vector<std::string>& arm_names() {
  static const std::vector<std::string> names = {std::string(plain_arm), "popularity", "markov"};
  return names;
}

void check_arms(const std::vector<std::string>& arms) {
  CHECK(!arms.empty(), "--arm: at least one is needed");
  for (auto arm = arms.begin(); arm != arms.end(); ++arm) {
    CHECK(std::find(arm_names().begin(), arm_names().end(), *arm) != arm_names().end(),
          "--arm: '{}'; must be one of {}{}", printable(*arm, 60), fmt::join(arm_names(), ", "),
          did_you_mean(*arm, arm_names()));
    CHECK(std::find(arms.begin(), arm, *arm) == arm, "--arm: '{}' is given twice", *arm);
  }
}

void combine_seeds(const std::filesystem::path& out, const data::LeaveOneOut& split, std::string_view program_version) {
  std::map<std::pair<std::string, std::int64_t>, std::filesystem::path> found;
  std::set<std::int64_t> seeds;
  runfile::RecommendRun run;
  for (const std::string& arm : arm_names()) {
    if (!std::filesystem::is_directory(out / arm)) continue;
    run.arms.push_back(arm);
    for (const auto& entry : std::filesystem::directory_iterator(out / arm)) {
      const std::string name = entry.path().filename().string();
      const std::filesystem::path file = entry.path() / result_name;
      if (!name.starts_with("seed-") || !std::filesystem::exists(file)) continue;
      const std::int64_t seed = std::strtoll(name.c_str() + 5, nullptr, 10);
      seeds.insert(seed);
      found[{arm, seed}] = file;
    }
  }
  run.request = read_json_file(out / request_name);
  run.seeds.assign(seeds.begin(), seeds.end());
  run.users = split.interactions().users;
  for (std::int64_t user = 0; user < split.users(); ++user) {
    run.target.push_back(split.target(user, data::HeldOut::test));
    run.history_length.push_back(std::ssize(split.history(user, data::HeldOut::test)));
    run.training_length.push_back(std::ssize(split.training(user)));
  }
  run.item_train_count.assign(split.training_counts().begin() + 1, split.training_counts().end());
  for (const std::string& arm : run.arms) {
    for (const std::int64_t seed : run.seeds) {
      auto& result = run.results.emplace_back();
      const auto file = found.find({arm, seed});
      if (file == found.end()) continue;
      SeedResult stored = load_seed_result(file->second);
      CHECK(std::ssize(stored.rank) == split.users(), "{}: has ranks of {} users; the data set has {}",
            printable(file->second.string()), stored.rank.size(), split.users());
      result = {std::move(stored.curve), stored.best_epoch, std::move(stored.test), std::move(stored.rank)};
    }
  }
  TemporaryFile file(out / runfile::run_file_name);
  runfile::write_recommend_run(file.path(), run, program_version);
  flush_to_disk(file.path());
  file.publish();
}

Json request_of(const RecommendRequest& request, const data::LeaveOneOut& split, std::int64_t threads_of_seed) {
  const data::Interactions& interactions = split.interactions();
  return {{"kind", "train recommend"},
          {"version", training_version},
          {"backbone", "sasrec"},
          {"data",
           {{"name", request.data_name},
            {"format", format_name(interactions.format)},
            {"users", split.users()},
            {"items", split.items()},
            {"interactions", interactions.interaction_count()},
            {"split", split.checksum()}}},
          {"training", Json(to_json(request.settings))},
          {"threads", threads_of_seed}};
}

RecommendOutcome train_recommend(const RecommendRequest& request, const data::LeaveOneOut& split) {
  check_arms(request.arms);
  CHECK(request.seeds >= 1, "--seeds: {}; at least 1 is needed", request.seeds);
  RecommendOutcome outcome;
  const std::vector<Job> jobs = jobs_of(request);
  const Sharing sharing = share_threads(request, std::ssize(jobs));
  outcome.seeds_at_once = sharing.seeds_at_once;
  outcome.threads_of_seed = sharing.threads_of_seed;
  if (std::find(request.arms.begin(), request.arms.end(), plain_arm) != request.arms.end()) {
    users_with_positions(split);  // throws before anything is written
    check_memory(request.settings, split, outcome.seeds_at_once);
  }
  const Json document = request_of(request, split, outcome.threads_of_seed);
  ensure_writable_folder(request.out);
  const runfile::FolderLock lock(request.out);
  check_request(request.out, document);

  SharedProgress progress(std::ssize(jobs) * request.settings.epochs, request.quiet);
  outcome.seeds.resize(jobs.size());
  std::atomic<std::size_t> next = 0;
  std::mutex failing;
  std::exception_ptr failure;
  at::set_num_threads(static_cast<int>(outcome.threads_of_seed));  // of each thread below
  std::vector<std::thread> workers;
  for (std::int64_t worker = 0; worker < outcome.seeds_at_once; ++worker) {
    workers.emplace_back([&] {
      try {
        for (std::size_t i = next++; i < jobs.size(); i = next++)
          outcome.seeds[i] = run_job(jobs[i], request, split, document, progress);
      } catch (...) {
        const std::lock_guard guard(failing);
        if (failure == nullptr) failure = std::current_exception();
        next = jobs.size();  // the other trainings go on to their end; no new one begins
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  if (failure != nullptr) std::rethrow_exception(failure);
  combine_seeds(request.out, split, request.program_version);
  return outcome;
}

}  // namespace gainlens::recommend
