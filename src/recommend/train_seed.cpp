#include "recommend/train_seed.h"

#include "core/check.h"
#include "core/listener.h"
#include "core/ranking_metrics.h"
#include "recommend/baselines.h"
#include "recommend/finished_seeds.h"
#include "recommend/recommend_task.h"
#include "recommend/recommender_checkpoint.h"
#include "runfile/recommend_run.h"
#include "training/trainer.h"
#include "training/training_folder.h"

#include <functional>
#include <optional>
#include <utility>

namespace gainlens::recommend {
namespace {

/// The ranks of the users, and the metrics that those of the test give.
/// @param ranks_of  of every user's held-out item
void add_ranks(experiment::Result& result, const std::function<std::vector<float>(data::HeldOut)>& ranks_of) {
  const std::vector<float> ranks = ranks_of(data::HeldOut::test), before = ranks_of(data::HeldOut::validation);
  for (const RankingMetric& metric : ranking_metrics()) result.test[metric.name()] = mean_of(metric, ranks);
  result.scores[runfile::rank_score].assign(ranks.begin(), ranks.end());
  result.scores[runfile::validation_rank_score].assign(before.begin(), before.end());
}

/// What the lists of the best items are like.
void add_lists(experiment::Result& result, Scorer& scorer, const SeedTraining& training) {
  result.test.merge(
      list_metrics_of(scorer, training.split, data::HeldOut::test, {.keep_seen = training.settings.keep_seen}));
}

/// Gives the model of the task the weights of the best epoch, which rank 0 has stored.
void take_best_weights(RecommendTask& task, const experiment::Job& job, training::Replicas& replicas) {
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
void prove_best(const RecommendTask& task, const experiment::Job& job, std::int64_t epoch,
                const std::filesystem::path& state) {
  runfile::prove_kept(task.kept(), checkpoint_files(job.folder),
                      {fmt::format("the best epoch, {},", epoch), "the training state",
                       fmt::format("delete {} to train again", printable(state.string()))});
}

experiment::StoredResult train_job(const experiment::Work& work, Arm arm, const SeedTraining& training) {
  const experiment::Job& job = work.job;
  const Settings& settings = training.settings;
  training::Replicas& replicas = work.replicas;
  const std::string label = fmt::format("{} seed {}", job.label(), job.seed);
  const bool times = settings.backbone->view(plan_of(settings, arm, training.split.items())).times;
  const TrainedOn trained_on = trained_on_split(training.split, training.options, times);
  const auto keep = [&](Backbone& model) {
    save_recommender(job.folder, model, trained_on, std::to_string(job.seed),
                     std::span(training.split.interactions().items).subspan(1));
    return runfile::checksums_of(checkpoint_files(job.folder));
  };
  RecommendTask task(settings, arm, training.split, job.seed, keep, replicas);
  std::optional<training::TrainingFolder> folder;
  if (replicas.leads()) folder.emplace(job.folder / "training", work.request, request_rules(*settings.backbone));
  training::TrainerOptions options = trainer_options(settings, task);
  if (!work.progress.quiet()) options.label = label;
  std::int64_t reached = 0;  // 0: no epoch of this call has ended
  bool warned = false;
  options.evaluated = [&](const training::Evaluation& point) {
    const std::int64_t epoch = point.step / task.steps_per_epoch();
    if (reached == 0) work.progress.skip(static_cast<double>(epoch - 1), label + " goes on");
    reached = epoch;
    const std::string warning = task.filter() != nullptr ? task.filter()->warning() : std::string();
    if (!warning.empty() && !warned && replicas.leads()) tell_note("{}, epoch {}: {}", label, epoch, warning);
    warned = warned || !warning.empty();
    work.progress.epoch_done(fmt::format("{}, epoch {}, loss {:.4f}, {}", label, epoch, point.training_loss,
                                         task.describe(point.validation_loss)));
  };
  const training::TrainingOutcome outcome = training::train(task, folder ? &*folder : nullptr, options, replicas);
  work.progress.skip(static_cast<double>(settings.epochs - reached), label + " done");

  experiment::StoredResult stored;
  experiment::Result& result = stored.result;
  result.best_epoch = outcome.best_step / task.steps_per_epoch();
  for (const training::Evaluation& point : outcome.history)
    result.curve["training_loss"].push_back(point.training_loss);
  for (std::size_t i = 0; i < ranking_metrics().size(); ++i)
    result.curve[ranking_metrics()[i].name()] = task.validation()[i];
  if (task.filter() != nullptr) result.filter = task.filter()->curves();
  if (folder) prove_best(task, job, result.best_epoch, folder->state_file());
  take_best_weights(task, job, replicas);
  add_ranks(result, [&](data::HeldOut held_out) { return task.ranks(held_out); });
  if (replicas.leads()) {
    BackboneScorer scorer(task.model());
    add_lists(result, scorer, training);
  }
  if (replicas.leads()) stored.kept = runfile::checksums_of(checkpoint_files(job.folder));
  return stored;
}

experiment::StoredResult baseline_result(const experiment::Job& job, const SeedTraining& training) {
  const data::LeaveOneOut& split = training.split;
  experiment::StoredResult stored;
  const auto scorer = make_baseline(job.arm, split);
  add_ranks(stored.result, [&](data::HeldOut held_out) {
    return rank_all(*scorer, split, held_out, {.keep_seen = training.settings.keep_seen});
  });
  add_lists(stored.result, *scorer, training);
  return stored;
}

}  // namespace

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

experiment::StoredResult train_seed(const experiment::Work& work, const SeedTraining& training) {
  const ArmParts* arm = find_arm(work.job.arm);
  if (arm != nullptr) return train_job(work, arm->arm, training);
  return work.replicas.leads() ? baseline_result(work.job, training) : experiment::StoredResult();
}

}  // namespace gainlens::recommend
