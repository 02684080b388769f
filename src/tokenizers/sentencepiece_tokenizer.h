#pragma once

#include "tokenizers/tokenizer.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace gainlens::tokenizers {

/// What a SentencePiece model does not say itself.
struct SentencePieceSettings {
  std::string where;                     ///< names the file in messages
  std::string source;                    ///< in the description: "tokenizer.model"
  bool adds_bos = false;                 ///< whether the tokenizer's own configuration puts BOS first
  std::optional<std::string> bos_piece;  ///< replaces the model's own BOS if it is one of the pieces
};

/// SentencePiece's own library over a serialised `ModelProto`. Control pieces are never found in a text, user-defined
/// ones always.
/// @throws InvalidArgument  not such a model, or one that the library refuses (its reason is quoted)
std::unique_ptr<Tokenizer> make_sentencepiece(std::string_view serialised_model, SentencePieceSettings settings);

}  // namespace gainlens::tokenizers
