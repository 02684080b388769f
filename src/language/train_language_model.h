#pragma once

#include "bft/arm.h"
#include "language/recipe.h"
#include "training/trainer.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::language {

struct LanguageModelRequest {
  std::filesystem::path recipe;              ///< JSON file, see Recipe
  std::vector<std::filesystem::path> texts;  ///< plain or gzipped UTF-8
  std::filesystem::path out;                 ///< checkpoint folder to make
  std::uint64_t seed = 0;
  std::optional<bft::FilterOptions> filter;  ///< the decoder has the Bayesian filter; empty: it is plain
  bft::Arm filter_arm = bft::Arm::bft;       ///< with a filter: all of it, or a part as a control
  /// Factor on the learning rate of the filter's parameters. The paper's 100 belongs to a learning rate of 1e-3; with
  /// that of small decoders it drives the precision of tokens to its bound, where it has no gradient.
  double precision_learning_rate = 10;
  /// Keep the weights of every evaluation, and those before training, in `out`/checkpoints/step-N.
  bool keep_checkpoints = false;
  bool quiet = false;
};

struct LanguageModelOutcome {
  training::TrainingOutcome training;
  std::filesystem::path folder;  ///< the checkpoint
  std::int64_t parameters = 0;
  std::int64_t training_tokens = 0;
  std::int64_t validation_tokens = 0;
  std::string diverged;  ///< why the training has diverged (core/divergence.h); empty: it has not
};

/// Trains a vocabulary and one Decoder from scratch. Leaves a checkpoint in Hugging Face layout in `out`: the weights
/// with the best held-out loss, config.json and the tokenizer. The folder `out`/training holds the request, the
/// training state and history.csv, for a filter also filter.csv: the means of each layer at each evaluation. The same
/// request continues where it stopped. Whether checkpoints are kept is no part of the request and changes no weight.
///
/// @throws InvalidArgument  recipe or texts wrong (see Recipe, data::read_text); texts too small; `out` holds a
///                          checkpoint that this request did not make, or is being written to; a file of a finished
///                          training has changed since it was written
/// @throws RunFailed        see training::train
LanguageModelOutcome train_language_model(const LanguageModelRequest& request);

}  // namespace gainlens::language
