#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace gainlens::language {

/// How a SentencePiece vocabulary is made.
struct TokenizerRecipe {
  std::int64_t vocabulary = 2048;  ///< pieces, the 3 control pieces and 256 byte pieces among them
  std::string algorithm = "bpe";   ///< bpe or unigram
  double character_coverage = 0.9995;
};

/// @throws InvalidArgument  a recipe out of range
void check(const TokenizerRecipe& recipe);

/// Trains a SentencePiece vocabulary with byte fallback and without normalisation, so that every text is kept as it is.
/// @returns the model, as it stands in tokenizer.model; the same texts give the same bytes
/// @throws InvalidArgument  a text too small for so many pieces; a recipe out of range
std::string train_tokenizer(std::span<const std::string> texts, const TokenizerRecipe& recipe);

/// Writes tokenizer.model and tokenizer_config.json (BOS put first) in Hugging Face layout.
/// @throws RunFailed  disk full
void write_tokenizer(const std::string& model, const std::filesystem::path& folder);

}  // namespace gainlens::language
