#pragma once

#include "training/adamw.h"
#include "training/schedule.h"
#include "training/training_folder.h"

#include <cstdint>
#include <string>
#include <vector>

namespace gainlens::training {

/// What is trained: a model with its data. The trainer asks it for gradients and for its loss on held-out data.
class Task {
 public:
  virtual ~Task() = default;
  virtual std::vector<ParameterGroup> parameters() = 0;
  /// Adds the gradients of one step's mean loss to the parameters and returns that loss. The data of a step depend on
  /// its number alone.
  virtual double accumulate_gradients(std::int64_t step) = 0;
  /// Units (tokens, interactions) that a step works through, for the rate shown.
  virtual double amount(std::int64_t step) const = 0;
  /// Loss on held-out data: what early stopping and the best checkpoint go by.
  virtual double validation_loss() = 0;
  /// Stores the model as it is now: called at each new best validation loss.
  virtual void keep_best() = 0;
};

struct TrainerOptions {
  std::int64_t steps = 0;
  Schedule schedule;
  AdamWOptions optimizer;
  double max_gradient_norm = 1;       ///< 0: no clipping
  std::int64_t evaluate_every = 100;  ///< steps; the last step is always evaluated
  std::int64_t save_every = 100;      ///< steps
  std::int64_t patience = 0;          ///< evaluations without a new best before training stops; 0: never
  std::uint64_t seed = 0;  ///< of libtorch's CPU generator, which a task may draw from (dropout), at the first step
  std::string title = "training";
  std::string unit = "tokens";
  bool quiet = false;
};

/// One evaluation: the point of a loss curve.
struct Evaluation {
  std::int64_t step = 0;     ///< steps done
  double training_loss = 0;  ///< mean over the steps since the last evaluation
  double validation_loss = 0;
  double learning_rate = 0;
  double gradient_norm = 0;  ///< mean over these steps, before clipping
};

struct TrainingOutcome {
  std::int64_t steps = 0;       ///< done in all
  std::int64_t resumed_at = 0;  ///< steps that an earlier call had done
  bool stopped_early = false;
  std::int64_t best_step = -1;
  double best_loss = 0;
  std::vector<Evaluation> history;
};

/// Trains until the last step or until patience ends. Killed at any moment and called again on the same folder it goes
/// on from the last state saved and ends with the same bits (same machine, same number of threads). A finished training
/// returns at once.
///
/// @throws InvalidArgument  options out of range; a state that is broken or not of this model
/// @throws RunFailed        NaN or infinite loss or gradient: what keep_best() stored stays
TrainingOutcome train(Task& task, const TrainingFolder& folder, const TrainerOptions& options);

/// The history as CSV with a header line.
std::string history_csv(const std::vector<Evaluation>& history);

}  // namespace gainlens::training
