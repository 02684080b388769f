#pragma once

#include "data/questions.h"
#include "tokenizers/tokenizer.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::language {

/// How prompts and answers become tokens.
struct AnswerTokens {
  const tokenizers::Tokenizer& tokenizer;
  std::optional<tokenizers::TokenId> bos;  ///< in front of each prompt
  tokenizers::TokenId end;                 ///< behind each answer
};

/// A prompt with its answer, to learn from.
struct AnswerRow {
  std::vector<std::int64_t> ids;  ///< prompt, answer, end
  std::int64_t first_answer = 0;  ///< place of the first token of the answer
  bool joined = false;            ///< the tokenizer joins prompt and answer: each was encoded by itself
};

/// The tokens of a prompt, BOS included.
std::vector<tokenizers::TokenId> prompt_tokens(const AnswerTokens& tokens, const std::string& prompt);

/// A space stands between prompt and answer. Both are encoded together if the tokens of the prompt are then as they are
/// alone; else each is encoded by itself (AnswerRow::joined).
AnswerRow answer_row(const AnswerTokens& tokens, const std::string& prompt, const std::string& answer);

/// The answer in a text that a model gave: without the spaces around it, up to the first line end.
std::string answer_in(const std::string& text);

}  // namespace gainlens::language
