#pragma once

#include "core/json.h"
#include "interventions/question.h"
#include "tokenizers/tokenizer.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace gainlens::interventions {

/// A token as people write it: a text that is one token of the tokenizer (" Paris"), an id (`6342` or `id:6342`), or
/// `text:5` for a text that could be an id.
/// @param tokenizer   null: ids alone
/// @param vocabulary  ids lie below it
/// @param option      "--answer", for messages
/// @throws InvalidArgument  several tokens (shows them), none, an id outside the vocabulary, digits that are an id and
///     the text of another token
tokenizers::TokenId token_of(std::string_view text, const tokenizers::Tokenizer* tokenizer, std::int64_t vocabulary,
                             std::string_view option);

/// @throws InvalidArgument  as token_of; one of the two is missing; both are the same token
AnswerPair answer_pair(std::string_view answer, std::string_view foil, const tokenizers::Tokenizer* tokenizer,
                       std::int64_t vocabulary);

/// What a request says of them: {"answer": id, "foil": id, "texts": ["' Paris'", "' Rome'"]}.
Json answer_request(const AnswerPair& pair, const tokenizers::Tokenizer* tokenizer);

/// A token for people: "' Paris'", or "token 7" without a tokenizer. Safe to print.
std::string shown_token(tokenizers::TokenId id, const tokenizers::Tokenizer* tokenizer);

}  // namespace gainlens::interventions
