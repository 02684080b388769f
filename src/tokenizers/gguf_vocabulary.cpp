#include "tokenizers/gguf_vocabulary.h"

#include "core/check.h"
#include "tokenizers/code_points.h"
#include "tokenizers/vocabulary.h"

namespace gainlens::tokenizers {
namespace {

constexpr const char* tokens_key = "tokenizer.ggml.tokens";
constexpr const char* types_key = "tokenizer.ggml.token_type";

std::vector<std::string_view> read_tokens(const formats::GgufMetadata& metadata) {
  auto tokens = metadata.texts(tokens_key);
  CHECK(tokens && !tokens->empty(), "{}: no {}; the file has no vocabulary", metadata.where(), tokens_key);
  constexpr std::size_t most = Vocabulary::largest_id + 1;
  CHECK(tokens->size() <= most, "{}: {} has {} tokens; at most {} are read", metadata.where(), tokens_key,
        tokens->size(), most);
  for (std::size_t id = 0; id < tokens->size(); ++id) {
    const auto invalid = first_invalid_utf8((*tokens)[id]);
    CHECK(!invalid, "{}: {}: token {} ('{}') is not UTF-8 at its byte {}", metadata.where(), tokens_key, id,
          printable((*tokens)[id]), *invalid);
  }
  return std::move(*tokens);
}

std::vector<PieceType> read_types(const formats::GgufMetadata& metadata, std::size_t tokens) {
  const auto numbers = metadata.integers(types_key);
  CHECK(numbers.has_value(), "{}: no {}; without it special tokens are not known", metadata.where(), types_key);
  CHECK(numbers->size() == tokens, "{}: {} has {} entries for {} tokens", metadata.where(), types_key, numbers->size(),
        tokens);
  std::vector<PieceType> types;
  types.reserve(tokens);
  for (std::size_t id = 0; id < tokens; ++id) {
    const std::int64_t type = (*numbers)[id];
    CHECK(type >= 1 && type <= 6, "{}: {}: token {} has type {}; types are from 1 (normal) to 6 (byte)",
          metadata.where(), types_key, id, type);
    types.push_back(static_cast<PieceType>(type));
  }
  return types;
}

}  // namespace

std::optional<TokenId> read_token_id(const formats::GgufMetadata& metadata, std::string_view key,
                                     std::size_t vocabulary_size) {
  if (!metadata.has(key)) return std::nullopt;
  return static_cast<TokenId>(metadata.integer(key, 0, static_cast<std::int64_t>(vocabulary_size) - 1));
}

GgufVocabulary read_gguf_vocabulary(const formats::GgufMetadata& metadata) {
  GgufVocabulary vocabulary;
  vocabulary.where = metadata.where();
  vocabulary.tokens = read_tokens(metadata);
  vocabulary.types = read_types(metadata, vocabulary.tokens.size());
  vocabulary.bos = read_token_id(metadata, "tokenizer.ggml.bos_token_id", vocabulary.tokens.size());
  return vocabulary;
}

}  // namespace gainlens::tokenizers
