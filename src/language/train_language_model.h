#pragma once

#include "bft/arm.h"
#include "language/language_model_task.h"
#include "language/recipe.h"
#include "training/trainer.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
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
  /// training::FilterTraining::curves(); empty: the arm has no filter.
  std::map<std::string, std::vector<double>> filter;
};

/// What all trainings of one recipe on the same texts share.
struct PreparedTexts {
  Recipe recipe;
  std::string where;                 ///< the recipe, for messages
  Json hashes;                       ///< the sha256 of each text
  std::string vocabulary;            ///< the bytes of tokenizer.model
  std::int64_t vocabulary_size = 0;  ///< pieces
  TrainingTokens tokens;
};

/// Reads recipe and texts, and makes the vocabulary.
/// @param requests  all trainings; they share recipe and texts, and each is checked
/// @throws InvalidArgument  as train_language_model(), before anything is written
PreparedTexts prepare_texts(std::span<const LanguageModelRequest> requests);

/// One of several trainings, as the call that makes all of them is told of it.
struct TrainingNews {
  std::string label;                                           ///< "bft seed 3"; empty: nothing is told
  std::function<void(const training::Evaluation&)> evaluated;  ///< may be empty
};

/// Trains one Decoder: all that train_language_model() does, behind its check of `out`.
/// @throws InvalidArgument, RunFailed  as train_language_model()
LanguageModelOutcome train_prepared(const LanguageModelRequest& request, const PreparedTexts& prepared,
                                    const TrainingNews& news = {});

/// Files of the folder of a training that is done: the checkpoint with its tokenizer.
const std::vector<std::string>& language_checkpoint_files();

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
