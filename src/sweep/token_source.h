#pragma once

#include "data/chunks.h"
#include "tokenizers/tokenizer.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::sweep {

/// Where the tokens of a sweep come from: a text and the checkpoint's tokenizer, or ids.
struct TokenSourceOptions {
  std::filesystem::path text;       ///< plain or gzipped; empty where ids are given
  std::filesystem::path token_ids;  ///< JSON array; empty where a text is given
  data::BosPolicy bos = data::BosPolicy::automatic;
};

/// Tokens of the whole text, and the fields of a run's request that describe them.
struct TokenSource {
  std::vector<tokenizers::TokenId> tokens;
  data::BosDecision bos;
  std::string tokenizer_sha256;       ///< over the tokenizer's files; "tokens" if ids were given
  std::string text_sha256;            ///< of the unpacked text, or of the ids
  std::string tokenizer_description;  ///< for people to read
};

/// Reads a text with the checkpoint's tokenizer, or a file of ids, and decides about the BOS token.
/// @param folder      the checkpoint that holds the tokenizer
/// @param vocabulary  ids must lie below it
/// @param config_bos  bos_token_id of the checkpoint's config
/// @throws InvalidArgument  neither or both sources, an unreadable one, ids outside the vocabulary (names the id and
///     its index), BOS errors
TokenSource read_tokens(const TokenSourceOptions& options, const std::filesystem::path& folder, std::int64_t vocabulary,
                        std::optional<std::int64_t> config_bos);

}  // namespace gainlens::sweep
