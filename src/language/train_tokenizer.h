#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace gainlens::language {

/// How a SentencePiece vocabulary is made.
struct TokenizerRecipe {
  std::int64_t vocabulary = 2048;      ///< number of pieces, including the 3 control pieces and the 256 byte pieces
  std::string algorithm = "bpe";       ///< bpe or unigram
  double character_coverage = 0.9995;  ///< share of the text's characters that get pieces of their own; 0.98 to 1
};

/// @throws InvalidArgument  a recipe out of range
void check(const TokenizerRecipe& recipe);

/// Trains a SentencePiece vocabulary with byte fallback. It does not normalise texts, so that no text is changed.
/// @returns the bytes of tokenizer.model; the same texts give the same bytes
/// @throws InvalidArgument  the texts are too small for so many pieces; a recipe out of range
std::string train_tokenizer(std::span<const std::string> texts, const TokenizerRecipe& recipe);

/// Writes tokenizer.model and tokenizer_config.json in Hugging Face layout. The configuration adds a BOS at the start
/// of a text.
/// @throws RunFailed  disk full
void write_tokenizer(const std::string& model, const std::filesystem::path& folder);

}  // namespace gainlens::language
