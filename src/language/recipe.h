#pragma once

#include "core/json.h"
#include "language/train_tokenizer.h"
#include "training/adamw.h"
#include "training/schedule.h"

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <vector>

namespace gainlens::language {

/// Steps taken at one context length. Training first on short contexts and then on the full one costs much less than
/// training on the full one from the start.
struct Stage {
  std::int64_t context;  ///< tokens per sequence, BOS included
  std::int64_t steps;
};

/// How a language model is trained from scratch: the contents of the file given as --config.
struct Recipe {
  /// config.json of the checkpoint without the keys that the tokenizer decides (vocab_size, bos_token_id,
  /// eos_token_id).
  OrderedJson model;
  TokenizerRecipe tokenizer;
  std::vector<Stage> stages;
  std::int64_t tokens_per_step = 8192;
  /// Tokens of a step that are processed at the same time. Fewer need less memory; the result changes only by rounding.
  std::int64_t tokens_at_once = 2048;
  training::AdamWOptions optimizer;
  training::Schedule schedule;             ///< its total_steps is the sum over the stages
  double weight_decay = 0.1;               ///< of matrices; norms and biases have no decay
  double max_gradient_norm = 1;            ///< larger gradients are scaled down to this L2 norm; 0: never
  double validation_fraction = 0.02;       ///< share of each text, at its end, that is held out
  std::int64_t validation_tokens = 32768;  ///< most held-out tokens that an evaluation uses, spread evenly
  std::int64_t evaluate_every = 100;       ///< steps
  std::int64_t save_every = 100;           ///< steps
  std::int64_t patience = 0;               ///< evaluations without a new best before training stops; 0: never
  at::ScalarType dtype = at::kBFloat16;    ///< dtype of the stored weights; training computes in float32
  Json document;                           ///< the whole file
};

/// @param where  names the file in messages
/// @throws InvalidArgument  a key is missing, unknown (the nearest match is named), of the wrong type or out of range
Recipe parse_recipe(const Json& document, const std::string& where);
/// @throws InvalidArgument  as parse_recipe(); the file cannot be read or is not JSON
Recipe read_recipe(const std::filesystem::path& file);

/// The number of layers of the model of a recipe.
/// @throws InvalidArgument  'model' is no model, or one that is not known
std::int64_t layers_of(const Recipe& recipe, const std::string& where);

}  // namespace gainlens::language
