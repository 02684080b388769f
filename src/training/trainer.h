#pragma once

#include "core/json.h"
#include "runfile/training_files.h"
#include "training/adamw.h"
#include "training/replicas.h"
#include "training/schedule.h"
#include "training/training_folder.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace gainlens::training {

/// A model with its data, to be trained. The trainer asks it for gradients and for the loss on held-out data.
class Task {
 public:
  virtual ~Task() = default;
  virtual std::vector<ParameterGroup> parameters() = 0;
  /// Adds the gradients of the step's mean loss to the parameters' gradients and returns this loss. The data of a step,
  /// and what is random in it (dropout), depend only on its number. If several processes train together, each returns
  /// its share of the loss and of the gradients, which add up to those of one process; a share may be without
  /// gradients.
  virtual double accumulate_gradients(std::int64_t step) = 0;
  /// Number of units (tokens, for example) that a step processes, for the rate that the progress line shows.
  virtual double amount(std::int64_t step) const = 0;
  /// Loss on held-out data. It decides about early stopping and about the best checkpoint.
  virtual double validation_loss() = 0;
  /// Stores the model as it is now. Called at each new best validation loss.
  virtual void keep_best() = 0;

  /// What a resumed training must know besides parameters and step number.
  virtual Json notes() const { return nullptr; }
  /// @param notes  what notes() returned when the state was saved
  virtual void restore(const Json&) {}
  /// A step for readers of messages; step 0 is the first.
  virtual std::string name_of(std::int64_t step) const;
  /// A validation loss for readers of the progress line.
  virtual std::string describe(double validation_loss) const;
};

using runfile::Evaluation;

struct TrainerOptions {
  std::int64_t steps = 0;
  Schedule schedule;
  AdamWOptions optimizer;
  double max_gradient_norm = 1;       ///< 0: no clipping
  std::int64_t evaluate_every = 100;  ///< steps; the last step is evaluated in any case
  std::int64_t save_every = 100;      ///< steps; the last step is saved in any case
  /// Of several processes, each holds the moments of its share of the parameters (SharedAdamW): less memory, the same
  /// numbers to rounding. States hold those of all processes either way.
  bool spread_moments = false;
  std::int64_t patience = 0;  ///< training stops after so many evaluations without a new best; 0: never
  std::function<void(const Evaluation&)> evaluated;  ///< called after each evaluation; may be empty
  std::string label;  ///< names the training when it continues from a stored state; empty: that is not told
  std::string title = "training";
  std::string unit = "tokens";
  bool quiet = false;
};

struct TrainingOutcome {
  std::int64_t steps = 0;       ///< number of steps done, with those of earlier calls
  std::int64_t resumed_at = 0;  ///< number of steps done by earlier calls
  bool stopped_early = false;
  std::int64_t best_step = -1;
  double best_loss = 0;
  std::vector<Evaluation> history;
};

/// Trains until the last step or until the patience is used up. A training may be killed at any moment. Called again on
/// the same folder, it continues from the last saved state and ends with the same bits (same machine, same number of
/// threads). A finished training returns at once.
///
/// @throws InvalidArgument  options out of range; a stored state that is broken or belongs to another model
/// @throws RunFailed        a loss or a gradient is NaN or infinite; the model that keep_best() stored stays
TrainingOutcome train(Task& task, const TrainingFolder& folder, const TrainerOptions& options);

/// Likewise with several processes, which all call this function with equal tasks. Only rank 0 stores states and calls
/// keep_best(). The losses are those of one process to rounding.
/// @param folder  of rank 0; null in the other processes, or if nothing is to be saved
TrainingOutcome train(Task& task, const TrainingFolder* folder, const TrainerOptions& options, Replicas& replicas);

}  // namespace gainlens::training
