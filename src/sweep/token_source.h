#pragma once

#include "data/chunks.h"
#include "tokenizers/tokenizer.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::sweep {

/// Where the tokens of a sweep come from: a text and the checkpoint's tokenizer, or ids.
struct TokenSourceOptions {
  std::filesystem::path text;       ///< plain or gzipped, "-": standard input; empty where ids are given
  std::filesystem::path token_ids;  ///< JSON array; empty where a text is given
  data::BosPolicy bos = data::BosPolicy::automatic;
  std::optional<std::string> prompt = {};  ///< a text itself, in place of a file
};

/// How many tokens are needed from the start of a text, if a BOS is put before each chunk and if not; nothing: all.
using TokensNeeded = std::function<std::optional<std::int64_t>(bool bos)>;

/// Needs all tokens of a text.
std::optional<std::int64_t> all_tokens(bool bos);

/// Tokens of a text, and the fields of a run's request that describe them.
struct TokenSource {
  std::vector<tokenizers::TokenId> tokens;  ///< of the whole text, or of a start of it that has as many as are needed
  bool whole = true;                        ///< whether these are all tokens of the text
  /// Tokens of the text without the line end that it ends with, where the text is a prompt: some lines, read whole.
  std::optional<std::int64_t> without_line_end;
  bool one_line = false;  ///< whether such a text has no other line end
  data::BosDecision bos;
  std::string tokenizer_sha256;                            ///< over the tokenizer's files; "tokens" if ids were given
  std::string text_sha256;                                 ///< of the unpacked text, or of the ids
  std::string tokenizer_description;                       ///< for people to read
  std::shared_ptr<const tokenizers::Tokenizer> tokenizer;  ///< null if ids were given
};

/// Reads a text with the checkpoint's tokenizer, or a file of ids, and decides about the BOS token. A text is read to
/// its end, for its checksum, and encoded as far as its tokens are needed. It is read once, so it may be a pipe.
/// @param folder      the checkpoint that holds the tokenizer
/// @param vocabulary  ids must lie below it
/// @param config_bos  bos_token_id of the checkpoint's config
/// @param needed      from the text, whose tokens beyond these are left out
/// @throws InvalidArgument  neither or both sources, an unreadable one, ids outside the vocabulary (names the id and
///     its index), BOS errors
TokenSource read_tokens(const TokenSourceOptions& options, const std::filesystem::path& folder, std::int64_t vocabulary,
                        std::optional<std::int64_t> config_bos, const TokensNeeded& needed = all_tokens);

/// Tells the listener that the last token of a prompt is, or holds, the line end of its file (as `echo` writes one).
void tell_of_line_end(const TokenSource& source);

}  // namespace gainlens::sweep
