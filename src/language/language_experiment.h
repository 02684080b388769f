#pragma once

#include "experiment/experiment.h"
#include "language/train_language_model.h"

#include <cstdint>
#include <string>
#include <vector>

namespace gainlens::language {

/// Several arms and seeds of a language model.
struct LanguageExperimentRequest {
  /// Recipe, texts and options. `out` is the folder of the run, `seed` the first seed, and `filter` what the arm `bft`
  /// has; `filter_arm` is not read.
  LanguageModelRequest model;
  std::vector<std::string> arms;  ///< as models::decoder_arm() names them
  std::int64_t seeds = 1;
  std::int64_t threads = 1;
  std::string program_version;
};

/// What one training of such a run is asked for, in OUT/ARM/seed-N: the same as of a training alone.
LanguageModelRequest request_of_training(const LanguageExperimentRequest& request, const experiment::Job& job);

/// Trains every arm with every seed. OUT/ARM/seed-N is the folder that train_language_model() makes, without the state
/// of a training that is done, and with its result. OUT/run.h5 has the loss of each held-out sequence, computed from
/// the stored checkpoint; sequences that chose the best step stand first.
/// @throws InvalidArgument  as train_language_model() and experiment::Experiment
/// @throws RunFailed        as training::train()
std::vector<experiment::Outcome> train_language_models(const LanguageExperimentRequest& request);

}  // namespace gainlens::language
