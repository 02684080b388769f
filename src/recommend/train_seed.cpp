#include "recommend/train_seed.h"

#include "core/atomic_file.h"
#include "core/check.h"
#include "core/divergence.h"
#include "core/listener.h"
#include "core/ranking_metrics.h"
#include "recommend/baselines.h"
#include "recommend/finished_seeds.h"
#include "recommend/recommend_task.h"
#include "recommend/recommender_checkpoint.h"
#include "recommend/seed_result.h"
#include "training/trainer.h"
#include "training/training_folder.h"
#include "training/training_state.h"

#include <chrono>
#include <map>
#include <optional>
#include <utility>

namespace gainlens::recommend {
namespace {

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

/// Gives the model of the task the weights of the best epoch, which rank 0 has stored.
void take_best_weights(RecommendTask& task, const SeedJob& job, training::Replicas& replicas) {
  std::optional<RecommenderCheckpoint> best;
  if (replicas.leads()) {
    best = open_recommender(job.folder);
    CHECK(best->seed.empty() || best->seed == std::to_string(job.seed),  // the first versions did not write it
          "{}: its checkpoint is not of seed {}; delete the folder to train again", printable(job.folder.string()),
          job.seed);
    const Json stored = Json(best->model->document());
    CHECK(stored == Json(task.model().document()),
          "{}: its checkpoint (arm {}) is not of this training (arm {}): another arm, shape or filter",
          printable(job.folder.string()), stored.value("arm", "plain"), job.arm);
  }
  task.take_weights(best ? best->model.get() : nullptr);
}

/// Proves that the checkpoint of the best epoch is as the training wrote it.
void prove_best(const RecommendTask& task, const SeedJob& job, std::int64_t epoch, const std::filesystem::path& state) {
  runfile::prove_kept(task.kept(), checkpoint_files(job.folder),
                      {fmt::format("the best epoch, {},", epoch), "the training state",
                       fmt::format("delete {} to train again", printable(state.string()))});
}

/// Everything that determines the result of one training.
Json own_request(const SeedJob& job, const SeedJobs& jobs) {
  Json own = jobs.document;
  own["arm"] = job.arm;
  own["seed"] = job.seed;
  return own;
}

SeedResult train_job(const SeedJob& job, Arm arm, const SeedJobs& jobs, training::Replicas& replicas) {
  const Settings& settings = jobs.request.settings;
  const TrainedOn trained_on = trained_on_split(jobs.split, jobs.request.options);
  const auto keep = [&](Backbone& model) {
    save_recommender(job.folder, model, trained_on, std::to_string(job.seed));
    return runfile::checksums_of(checkpoint_files(job.folder));
  };
  RecommendTask task(settings, arm, jobs.split, job.seed, keep, replicas);
  std::optional<training::TrainingFolder> folder;
  if (replicas.leads())
    folder.emplace(job.folder / "training", own_request(job, jobs), request_rules(*jobs.request.settings.backbone));
  training::TrainerOptions options = trainer_options(settings, task);
  std::int64_t reached = 0;  // 0: no epoch of this call has ended
  bool warned = false;
  options.evaluated = [&](const training::Evaluation& point) {
    const std::int64_t epoch = point.step / task.steps_per_epoch();
    if (reached == 0)
      jobs.progress.skip(static_cast<double>(epoch - 1), fmt::format("{} seed {} goes on", job.arm, job.seed));
    reached = epoch;
    const std::string warning = task.filter() != nullptr ? task.filter()->warning() : std::string();
    if (!warning.empty() && !warned && replicas.leads())
      tell_note("{} seed {}, epoch {}: {}", job.arm, job.seed, epoch, warning);
    warned = warned || !warning.empty();
    jobs.progress.epoch_done(fmt::format("{} seed {}, epoch {}, loss {:.4f}, {}", job.arm, job.seed, epoch,
                                         point.training_loss, task.describe(point.validation_loss)));
  };
  const training::TrainingOutcome outcome = training::train(task, folder ? &*folder : nullptr, options, replicas);
  jobs.progress.skip(static_cast<double>(settings.epochs - reached), fmt::format("{} seed {} done", job.arm, job.seed));

  SeedResult result;
  result.best_epoch = outcome.best_step / task.steps_per_epoch();
  for (const training::Evaluation& point : outcome.history)
    result.curve["training_loss"].push_back(point.training_loss);
  for (std::size_t i = 0; i < ranking_metrics().size(); ++i)
    result.curve[ranking_metrics()[i].name()] = task.validation()[i];
  if (task.filter() != nullptr) result.filter = task.filter()->curves();
  if (folder) prove_best(task, job, result.best_epoch, folder->state_file());
  take_best_weights(task, job, replicas);
  result.rank = task.ranks(data::HeldOut::test);
  result.test = metrics_of(result.rank);
  if (replicas.leads()) result.kept = runfile::checksums_of(checkpoint_files(job.folder));
  return result;
}

SeedResult baseline_result(const SeedJob& job, const data::LeaveOneOut& split) {
  SeedResult result;
  result.rank = rank_all(*make_baseline(job.arm, split), split, data::HeldOut::test);
  result.test = metrics_of(result.rank);
  return result;
}

SeedOutcome outcome_of(const SeedJob& job, const SeedResult& result, std::int64_t items, double seconds) {
  SeedOutcome outcome{.arm = job.arm, .seed = job.seed, .test = result.test, .best_epoch = result.best_epoch};
  outcome.seconds = seconds;
  if (const auto loss = result.curve.find("training_loss"); loss != result.curve.end())
    outcome.diverged = divergence(loss->second, items);
  for (const auto& [name, values] : result.curve) {
    outcome.epochs = std::ssize(values);
    if (result.best_epoch > 0) outcome.validation[name] = values.at(static_cast<std::size_t>(result.best_epoch) - 1);
  }
  return outcome;
}

/// The result of a job that has been done, with its files proven. A result of fewer epochs than are asked for now is
/// removed: its training goes on and replaces its checkpoint.
std::optional<SeedResult> finished_result(const SeedJob& job, const Settings& settings, const std::string& request) {
  const std::filesystem::path file = job.folder / seed_result_name;
  if (!std::filesystem::exists(file)) return std::nullopt;
  SeedResult result = prove_seed(job.folder, job.arm, job.seed);
  CHECK(result.request.empty() || result.request == request,
        "{}: is the result of a training with another request, such as other settings or data; put the files of this "
        "training back, or delete {} to train this seed again",
        printable(file.string()), printable(job.folder.string()));
  const std::filesystem::path state = job.folder / "training" / "state.safetensors";
  if (std::filesystem::exists(state)) training::load_training_state(state);  // more epochs would continue from it
  if (is_finished(result, settings.epochs, settings.patience)) return result;
  std::filesystem::remove(file);
  return std::nullopt;
}

}  // namespace

double cost_of(const SeedJob& job, const Settings& settings) {
  constexpr double of_ranking = 0.1;  // of an epoch, whose own ranking is a small part of it
  return find_arm(job.arm) != nullptr ? static_cast<double>(settings.epochs) : of_ranking;
}

SeedOutcome stored_outcome(const SeedJob& job, std::int64_t items) {
  return outcome_of(job, load_seed_result(job.folder / seed_result_name, job.arm, job.seed), items, 0);
}

SeedOutcome run_job(const SeedJob& job, const SeedJobs& jobs, training::Replicas& replicas) {
  const auto start = std::chrono::steady_clock::now();
  const std::filesystem::path file = job.folder / seed_result_name;
  const std::string request =
      training::request_identity(own_request(job, jobs), request_rules(*jobs.request.settings.backbone));
  const std::optional<SeedResult> done =
      replicas.leads() ? finished_result(job, jobs.request.settings, request) : std::nullopt;
  if (replicas.text_of_first(done ? "done" : "") == "done") {
    jobs.progress.skip(cost_of(job, jobs.request.settings),
                       fmt::format("{} seed {} was done before", job.arm, job.seed));
    return done ? outcome_of(job, *done, jobs.split.items(), 0) : SeedOutcome{.arm = job.arm, .seed = job.seed};
  }
  if (replicas.leads()) ensure_writable_folder(job.folder);
  SeedResult result;
  if (const ArmParts* arm = find_arm(job.arm)) {
    result = train_job(job, arm->arm, jobs, replicas);
  } else {
    if (replicas.leads()) result = baseline_result(job, jobs.split);
    jobs.progress.ranked(cost_of(job, jobs.request.settings), fmt::format("{} seed {} done", job.arm, job.seed));
  }
  if (!replicas.leads()) return {.arm = job.arm, .seed = job.seed};
  result.request = request;
  save_seed_result(file, job.arm, job.seed, result);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  return outcome_of(job, result, jobs.split.items(), taken.count());
}

}  // namespace gainlens::recommend
