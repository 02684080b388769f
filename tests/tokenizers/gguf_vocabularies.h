#pragma once

#include "support/gguf_bytes.h"
#include "tokenizers/tokenizer.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace gainlens::testing {

/// Types of tokens as GGUF numbers them.
inline constexpr std::int32_t normal_token = 1, unknown_token = 2, control_token = 3, user_token = 4, unused_token = 5,
                              byte_token = 6;

/// A vocabulary of type "gpt2", without any key about BOS. Merges are lines "a b".
GgufBytes gpt2_gguf(const std::vector<std::string>& tokens, const std::vector<std::int32_t>& types,
                    const std::vector<std::string>& merges, const std::string& pre);

/// A vocabulary of type "llama". The unknown token is the token of type unknown_token.
GgufBytes llama_gguf(const std::vector<std::string>& tokens, const std::vector<float>& scores,
                     const std::vector<std::int32_t>& types);

/// Vocabularies of the shared data, as a converter would write them: GPT-2's vocabulary from its two files, Llama's
/// from a SentencePiece model.
GgufBytes gpt2_gguf(const std::filesystem::path& vocabulary, const std::filesystem::path& merges);
GgufBytes llama_gguf(const std::filesystem::path& model);

/// Opens the tokenizer of a GGUF file with this content.
std::unique_ptr<tokenizers::Tokenizer> open_tokenizer(const GgufBytes& gguf);

}  // namespace gainlens::testing
