#pragma once

#include "data/leave_one_out.h"
#include "recommend/backbone.h"
#include "recommend/full_ranking.h"
#include "recommend/sampled_softmax.h"
#include "recommend/settings.h"
#include "recommend/training_batch.h"
#include "training/filter_training.h"
#include "training/replicas.h"
#include "training/schedule.h"
#include "training/trainer.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gainlens::recommend {

/// The users with at least two training items: those that a training has positions of.
/// @throws InvalidArgument  there is none
std::vector<std::int64_t> users_with_positions(const data::LeaveOneOut& split);

/// Refuses a training that cannot be done.
/// @throws InvalidArgument  BackboneKind::check(); the backbone sees times, and the data set has none
void check_training(const Settings& settings, Arm arm, const data::LeaveOneOut& split, const std::string& where);

/// A training of one arm of a backbone on the histories of training_batch(). The validation loss is the negative
/// NDCG@10 of the validation items. Of several processes, each takes a part of the users of a batch, and of those that
/// are ranked.
class RecommendTask : public training::Task {
 public:
  /// @param split     must exist as long as the task, as must `replicas`
  /// @param keep      stores the model, at each new best validation loss; returns the checksums of its files
  /// @param replicas  the processes that train together
  /// @throws InvalidArgument  no user has two training items; as check_training()
  RecommendTask(const Settings& settings, Arm arm, const data::LeaveOneOut& split, std::uint64_t seed,
                std::function<Json(Backbone&)> keep, training::Replicas& replicas);

  std::vector<training::ParameterGroup> parameters() override;
  double accumulate_gradients(std::int64_t step) override;
  double amount(std::int64_t step) const override;
  double validation_loss() override;
  void keep_best() override { kept_ = keep_(*model_); }
  Json notes() const override;
  void restore(const Json& notes) override;
  std::string name_of(std::int64_t step) const override;
  std::string describe(double validation_loss) const override;

  /// Puts a filter in force before any training, as if there were no warm-up: tau_range, the factors of the Jacobian
  /// and the running means follow from the first batch, and nothing else changes. For the model at step 0.
  void start_filter();

  std::int64_t steps_per_epoch() const;
  Backbone& model() { return *model_; }
  /// Null if the model has no filter.
  const training::FilterTraining* filter() const { return filter_ ? &*filter_ : nullptr; }
  /// What `keep` returned last, also before the training was resumed; null in states of older versions.
  const Json& kept() const { return kept_; }
  /// Gives the model the weights of rank 0's `best`, of the same configuration. All processes call it.
  /// @param best  null in the other processes
  void take_weights(Backbone* best);
  /// Ranks of the held-out items of all users, by the model as it is now. All processes call it.
  /// @returns [user]
  std::vector<float> ranks(data::HeldOut held_out) const;
  /// [metric, epoch]: the ranking metrics on the validation items, in the order of ranking_metrics().
  const std::vector<std::vector<double>>& validation() const { return validation_; }

 private:
  /// Users of a step, a part of an epoch's order: those of all processes.
  std::vector<std::int64_t> users_of(std::int64_t step);
  /// What this process reads in a step, or what all of them do.
  TrainingBatch batch_of(std::int64_t step, bool all_processes = false);
  /// The training inputs of users as a ranking would read them.
  PackedSequences inputs_of(std::span<const std::int64_t> users) const;
  /// Backward pass of this process's part of a step.
  /// @returns  its share of the loss
  double add_gradients(const TrainingBatch& batch, std::int64_t step);
  /// A pass as in evaluation, for its hooks.
  void run_evaluation(const PackedSequences& inputs, const hooks::Hooks& hooks) const;
  /// Such passes over all users, a part at a time.
  /// @returns  the items of each part
  std::vector<at::Tensor> run_all(const hooks::Hooks& hooks) const;
  /// A part of users_, from a place on.
  std::span<const std::int64_t> first_users(std::int64_t first) const;
  at::Tensor loss_of(const at::Tensor& hidden, const at::Tensor& targets, std::int64_t step) const;

  const Settings& settings_;
  const data::LeaveOneOut& split_;
  std::uint64_t seed_;
  std::unique_ptr<Backbone> model_;
  HistoryView view_;                                // of the model
  std::vector<std::int64_t> users_;                 // those with a position
  std::optional<training::FilterTraining> filter_;  // of models that have one
  training::DataOrder order_;
  std::optional<ItemSampler> sampler_;
  std::vector<std::vector<double>> validation_;
  std::function<Json(Backbone&)> keep_;
  Json kept_;
  training::Replicas& replicas_;
};

}  // namespace gainlens::recommend
