#pragma once

#include "core/random.h"
#include "tokenizers/tokenizer.h"

#include <cstdint>
#include <optional>
#include <span>

namespace gainlens::generation {

/// How a token is drawn at random. Source: Holtzman et al., "The Curious Case of Neural Text Degeneration" (2020), for
/// top_p; the order of both steps is that of Hugging Face transformers.
struct Sampling {
  double temperature = 1;  ///< logits are divided by it; above 0
  /// In (0, 1]. Drawn from the most likely tokens: the fewest that have at least this share of the probability.
  double top_p = 1;
};

/// A token, and its log-probability under the model itself, whatever the sampling.
struct ChosenToken {
  tokenizers::TokenId id = 0;
  double log_probability = 0;
};

/// The most likely token, the first of equal ones.
/// @param logits  of all tokens, each finite
ChosenToken most_likely_token(std::span<const double> logits);

/// A token that is drawn at random.
/// @param logits  of all tokens, each finite
ChosenToken drawn_token(std::span<const double> logits, const Sampling& sampling, Random& random);

/// @throws InvalidArgument  a number out of its range
void check_sampling(const Sampling& sampling);

}  // namespace gainlens::generation
