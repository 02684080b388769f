#pragma once

#include "experiment/experiment.h"
#include "recommend/recommend_task.h"
#include "recommend/train_recommend.h"
#include "training/trainer.h"

namespace gainlens::recommend {

/// What a job of a run is trained with.
struct SeedTraining {
  const Settings& settings;  ///< those of its variant
  const data::LeaveOneOut& split;
  const data::InteractionOptions& options;  ///< with which the data were read
};

/// How the training of a task goes on, from the settings.
training::TrainerOptions trainer_options(const Settings& settings, const RecommendTask& task);

/// Trains one arm with one seed to its end, or continues it, and evaluates the best epoch on the test items. Baselines
/// need no training; they are evaluated.
/// @returns  for rank 0
experiment::StoredResult train_seed(const experiment::Work& work, const SeedTraining& training);

}  // namespace gainlens::recommend
