#include "core/check.h"
#include "tokenizers/code_points.h"
#include "tokenizers/gguf_pre_tokenizers.h"
#include "tokenizers/gguf_tokenizer.h"
#include "tokenizers/pipeline_tokenizer.h"

#include <utility>

namespace gainlens::tokenizers {
namespace {

constexpr const char* merges_key = "tokenizer.ggml.merges";
constexpr const char* pre_key = "tokenizer.ggml.pre";
constexpr const char* add_bos_key = "tokenizer.ggml.add_bos_token";

std::vector<Bpe::Merge> read_merges(const formats::GgufMetadata& metadata) {
  const auto lines = metadata.texts(merges_key);
  CHECK(lines.has_value(), "{}: no {}; a 'gpt2' vocabulary needs them", metadata.where(), merges_key);
  std::vector<Bpe::Merge> merges;
  merges.reserve(lines->size());
  for (std::size_t rank = 0; rank < lines->size(); ++rank) {
    const std::string where = fmt::format("{}: {}: merge {}", metadata.where(), merges_key, rank);
    const auto invalid = first_invalid_utf8((*lines)[rank]);
    CHECK(!invalid, "{}: '{}' is not UTF-8 at its byte {}", where, printable((*lines)[rank]), *invalid);
    merges.push_back(parse_merge((*lines)[rank], where));
  }
  return merges;
}

Vocabulary read_tokens(const GgufVocabulary& from) {
  Vocabulary vocabulary;
  const std::string where = from.where + ": tokenizer.ggml.tokens";
  for (std::size_t id = 0; id < from.tokens.size(); ++id)
    vocabulary.add(from.tokens[id], static_cast<std::int64_t>(id), where);
  return vocabulary;
}

/// Tokens that are looked for in the text. User-defined ones are looked for in the normalised text, special ones in the
/// text as given. GGUF does not store this; these are the defaults of the tokenizers that the models come with.
std::vector<AddedToken> added_tokens(const GgufVocabulary& vocabulary) {
  std::vector<AddedToken> added;
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const PieceType type = vocabulary.types[id];
    CHECK(type != PieceType::byte, "{}: token {} is of type byte; a 'gpt2' vocabulary writes bytes as characters",
          vocabulary.where, id);
    if (type == PieceType::normal || type == PieceType::unused) continue;
    AddedToken token;
    token.content = vocabulary.tokens[id];
    token.id = static_cast<TokenId>(id);
    token.special = type != PieceType::user_defined;
    token.normalized = !token.special;
    added.push_back(std::move(token));
  }
  return added;
}

}  // namespace

std::unique_ptr<Tokenizer> make_gguf_byte_level_bpe(const formats::GgufMetadata& metadata,
                                                    const GgufVocabulary& vocabulary) {
  CHECK(metadata.has(pre_key),
        "{}: no {}, so the pattern of words is not known; convert the model again with a newer converter",
        vocabulary.where, pre_key);
  CHECK(!metadata.boolean("tokenizer.ggml.add_space_prefix", false),
        "{}: tokenizer.ggml.add_space_prefix is true, which is not supported with a 'gpt2' vocabulary",
        vocabulary.where);
  const std::string pre = metadata.text(pre_key);
  GgufPreTokenizer parts_of_pre = make_gguf_pre_tokenizer(pre, vocabulary.where);

  TokenizerParts parts;
  BpeOptions options;
  options.ignore_merges = parts_of_pre.ignore_merges;
  parts.model =
      std::make_unique<Bpe>(read_tokens(vocabulary), read_merges(metadata), std::move(options), vocabulary.where);
  parts.added_tokens = added_tokens(vocabulary);
  parts.normalizer = std::move(parts_of_pre.normalizer);
  parts.pre_tokenizer = std::move(parts_of_pre.pre_tokenizer);
  parts.token_bytes = TokenBytes::byte_level;
  parts.bos = vocabulary.bos;
  parts.adds_bos = metadata.boolean(add_bos_key, parts_of_pre.adds_bos.value_or(false));
  if (!metadata.has(add_bos_key) && !parts_of_pre.adds_bos) {
    parts.bos_doubt =
        fmt::format("the file has no {}, and programs differ about {} '{}' without it", add_bos_key, pre_key, pre);
  }
  parts.description = fmt::format("byte-level BPE, {{}} tokens (GGUF, {})", pre);
  return make_pipeline(std::move(parts), vocabulary.where);
}

}  // namespace gainlens::tokenizers
