#pragma once

#include "experiment/experiment.h"
#include "recommend/train_recommend.h"

namespace gainlens::recommend {

/// What a job of a run is trained with.
struct SeedTraining {
  const Settings& settings;  ///< those of its variant
  const data::LeaveOneOut& split;
  const data::InteractionOptions& options;  ///< with which the data were read
};

/// Trains one arm with one seed to its end, or continues it, and evaluates the best epoch on the test items. Baselines
/// need no training; they are evaluated.
/// @returns  for rank 0
experiment::StoredResult train_seed(const experiment::Work& work, const SeedTraining& training);

}  // namespace gainlens::recommend
