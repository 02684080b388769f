#pragma once

#include "data/chunks.h"
#include "tokenizers/tokenizer.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::interventions {

/// Two prompts of equally many tokens, which differ.
struct PromptPair {
  std::vector<tokenizers::TokenId> clean, corrupt;  ///< BOS included
  data::BosDecision bos;
  std::string tokenizer_sha256;                            ///< "tokens" if ids were given
  std::shared_ptr<const tokenizers::Tokenizer> tokenizer;  ///< null if ids were given
};

/// Where prompts come from.
struct PromptOptions {
  std::string clean, corrupt;  ///< each a text, a file with a text, or a file *.json with token ids
  data::BosPolicy bos = data::BosPolicy::automatic;
};

/// Reads both prompts. The line end that a file with a text ends with is no part of the prompt.
/// @param folder      the checkpoint that holds the tokenizer
/// @param vocabulary  ids must lie below it
/// @param config_bos  bos_token_id of the checkpoint's config
/// @throws InvalidArgument  one is missing or empty, one has ids and the other text, ids outside the vocabulary, other
///     numbers of tokens (shows both side by side), the same tokens, fewer than two tokens
PromptPair read_prompts(const PromptOptions& options, const std::filesystem::path& folder, std::int64_t vocabulary,
                        std::optional<std::int64_t> config_bos);

}  // namespace gainlens::interventions
