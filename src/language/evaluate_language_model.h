#pragma once

#include "hooks/hooked_model.h"
#include "tokenizers/tokenizer.h"

#include <cstdint>
#include <optional>
#include <span>

namespace gainlens::language {

/// How well a model predicts a text, and how well the frequencies of the tokens alone predict it.
struct LanguageModelLoss {
  std::int64_t tokens = 0;     ///< number of tokens of the text
  std::int64_t predicted = 0;  ///< predicted tokens: all with a BOS; without a BOS all but the first of each chunk
  std::int64_t chunks = 0;
  double loss = 0;  ///< mean negative log likelihood of the predicted tokens, in nats
  /// Of the loss, from its variation between chunks; NaN with fewer than two. Chunks of one text are not independent.
  double standard_error = 0;
  /// -sum f ln f over the text's own token frequencies f, in nats: the smallest loss of a predictor without context.
  double unigram_entropy = 0;
};

/// Entropy of the token frequencies, in nats.
/// @param tokens  at least one
double unigram_entropy(std::span<const tokenizers::TokenId> tokens);

/// Measures the loss over the whole text. Cuts it into consecutive chunks of `context` tokens; the last may be shorter.
/// If a BOS is given, it is the first token of each chunk.
/// @throws InvalidArgument  fewer than two tokens; a context below 2 or above the model's number of positions
LanguageModelLoss evaluate_language_model(hooks::HookedModel& model, std::span<const tokenizers::TokenId> tokens,
                                          std::optional<tokenizers::TokenId> bos, std::int64_t context, bool quiet);

}  // namespace gainlens::language
