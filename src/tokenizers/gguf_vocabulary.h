#pragma once

#include "formats/gguf_file.h"
#include "tokenizers/sentencepiece_model.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::tokenizers {

/// The part of a GGUF vocabulary that all kinds share. The views point into the mapped file.
struct GgufVocabulary {
  std::string where;                     ///< names the file in messages
  std::vector<std::string_view> tokens;  ///< by id, valid UTF-8
  std::vector<PieceType> types;          ///< of each token
  std::optional<TokenId> bos;            ///< tokenizer.ggml.bos_token_id
};

/// @throws InvalidArgument  no tokens, too many, one that is not UTF-8; types missing, of another length or unknown; a
///     BOS id out of range
GgufVocabulary read_gguf_vocabulary(const formats::GgufMetadata& metadata);

/// The id stored under `key`; nothing where it is absent.
/// @throws InvalidArgument  not an id of the vocabulary
std::optional<TokenId> read_token_id(const formats::GgufMetadata& metadata, std::string_view key,
                                     std::size_t vocabulary_size);

}  // namespace gainlens::tokenizers
