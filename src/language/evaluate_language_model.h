#pragma once

#include "hooks/hooked_model.h"
#include "tokenizers/tokenizer.h"

#include <cstdint>
#include <optional>
#include <span>

namespace gainlens::language {

/// How well a model predicts a text, beside what the frequencies of the tokens alone give.
struct LanguageModelLoss {
  std::int64_t tokens = 0;     ///< of the text
  std::int64_t predicted = 0;  ///< all of them with a BOS; without one the first of each chunk is not
  std::int64_t chunks = 0;
  double loss = 0;  ///< mean negative log likelihood of the predicted tokens, nats
  double unigram_entropy =
      0;  ///< -sum f ln f over the text's own token frequencies, nats: the best any context-free predictor can do
};

/// Entropy of the frequencies with which the tokens occur, in nats. @param tokens  at least one
double unigram_entropy(std::span<const tokenizers::TokenId> tokens);

/// Cuts the whole text into consecutive chunks of `context` tokens, a BOS first where one is given; the last may be
/// shorter.
/// @throws InvalidArgument  fewer than two tokens; a context the model does not have
LanguageModelLoss evaluate_language_model(hooks::HookedModel& model, std::span<const tokenizers::TokenId> tokens,
                                          std::optional<tokenizers::TokenId> bos, std::int64_t context, bool quiet);

}  // namespace gainlens::language
