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

/// Steps taken at one context length. Training mostly on short contexts and then on the full one costs a fraction of
/// the full one throughout.
struct Stage {
  std::int64_t context;  ///< tokens a sequence, its BOS among them
  std::int64_t steps;
};

/// How a language model is trained from scratch: the file given as --config.
struct Recipe {
  OrderedJson model;  ///< config.json of the checkpoint, but for what the tokenizer decides (vocab_size, bos_token_id,
                      ///< eos_token_id)
  TokenizerRecipe tokenizer;
  std::vector<Stage> stages;
  std::int64_t tokens_per_step = 8192;
  std::int64_t tokens_at_once =
      2048;  ///< of these a step works through as many at a time: bounds memory, changes the result by rounding
  training::AdamWOptions optimizer;
  training::Schedule schedule;  ///< its total_steps is the sum over stages
  double weight_decay = 0.1;    ///< of matrices; norms and biases have none
  double max_gradient_norm = 1;
  double validation_fraction = 0.02;       ///< of each text, from its end; never trained on
  std::int64_t validation_tokens = 32768;  ///< of these at most as many are used, spread evenly
  std::int64_t evaluate_every = 100;       ///< steps
  std::int64_t save_every = 100;           ///< steps
  std::int64_t patience = 0;               ///< evaluations
  at::ScalarType dtype = at::kBFloat16;    ///< of the stored weights; training is in float32
  Json document;                           ///< the file, whole
};

/// @throws InvalidArgument  not JSON; a key missing, unknown (nearest match named), of the wrong type or out of range
Recipe parse_recipe(const Json& document, const std::string& where);
Recipe read_recipe(const std::filesystem::path& file);

}  // namespace gainlens::language
