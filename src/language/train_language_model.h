#pragma once

#include "language/recipe.h"
#include "training/trainer.h"

#include <cstdint>
#include <filesystem>
#include <vector>

namespace gainlens::language {

struct LanguageModelRequest {
  std::filesystem::path recipe;              ///< see Recipe
  std::vector<std::filesystem::path> texts;  ///< plain or gzipped UTF-8
  std::filesystem::path out;                 ///< checkpoint folder to be made
  std::uint64_t seed = 0;
  bool quiet = false;
};

struct LanguageModelOutcome {
  training::TrainingOutcome training;
  std::filesystem::path folder;  ///< the checkpoint
  std::int64_t parameters = 0;
  std::int64_t training_tokens = 0;
  std::int64_t validation_tokens = 0;
};

/// Trains a vocabulary and one Decoder from scratch and leaves a checkpoint in Hugging Face layout in `out`: the
/// weights of the best held-out loss, config.json, the tokenizer; under `out`/training the request, the state and
/// history.csv. The same request goes on where it stopped.
///
/// @throws InvalidArgument  recipe or texts wrong (see Recipe, data::read_text); texts too small; `out` holds a
///                          checkpoint that this request did not make, or is being written to
/// @throws RunFailed        see training::train
LanguageModelOutcome train_language_model(const LanguageModelRequest& request);

}  // namespace gainlens::language
