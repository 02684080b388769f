#include "core/check.h"
#include "tokenizers/gguf_tokenizer.h"
#include "tokenizers/sentencepiece_tokenizer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace gainlens::tokenizers {
namespace {

constexpr const char* scores_key = "tokenizer.ggml.scores";
constexpr const char* unknown_key = "tokenizer.ggml.unknown_token_id";

std::vector<double> read_scores(const formats::GgufMetadata& metadata, std::size_t tokens) {
  auto scores = metadata.numbers(scores_key);
  CHECK(scores.has_value(), "{}: no {}; pieces without scores cannot be merged", metadata.where(), scores_key);
  CHECK(scores->size() == tokens, "{}: {} has {} entries for {} tokens", metadata.where(), scores_key, scores->size(),
        tokens);
  constexpr double largest = std::numeric_limits<float>::max();
  const auto bad = std::find_if(scores->begin(), scores->end(), [](double score) { return std::abs(score) > largest; });
  CHECK(bad == scores->end(), "{}: {}: token {} has score {}; must fit a float", metadata.where(), scores_key,
        bad - scores->begin(), *bad);
  return std::move(*scores);
}

/// Writes U+2581, SentencePiece's sign for a space, in place of spaces. Converters put plain spaces into user-defined
/// pieces, and only into these. SentencePiece looks for them after it has written the sign, so the sign must be put
/// back.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char byte : text) {
    if (byte == ' ')
      result += "\u2581";
    else
      result += byte;
  }
  return result;
}

std::vector<Piece> read_pieces(const GgufVocabulary& vocabulary, const std::vector<double>& scores) {
  std::vector<Piece> pieces;
  pieces.reserve(vocabulary.tokens.size());
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string_view text = vocabulary.tokens[id];
    const PieceType type = vocabulary.types[id];
    pieces.push_back(
        {type == PieceType::user_defined ? escaped(text) : std::string(text), static_cast<float>(scores[id]), type});
  }
  return pieces;
}

/// The unknown piece: the one that the metadata names, whatever its type (converters write Gemma's as control),
/// otherwise the one of type unknown.
TokenId find_unknown(const formats::GgufMetadata& metadata, const GgufVocabulary& vocabulary) {
  const auto named = read_token_id(metadata, unknown_key, vocabulary.types.size());
  const auto first = std::find(vocabulary.types.begin(), vocabulary.types.end(), PieceType::unknown);
  CHECK(named || first != vocabulary.types.end(), "{}: no unknown token: neither {}, nor a token of type 2",
        vocabulary.where, unknown_key);
  const TokenId unknown = named ? *named : static_cast<TokenId>(first - vocabulary.types.begin());
  for (std::size_t id = 0; id < vocabulary.types.size(); ++id) {
    CHECK(vocabulary.types[id] != PieceType::unknown || static_cast<TokenId>(id) == unknown,
          "{}: token {} is of type unknown, but {} is the unknown token; there can be only one", vocabulary.where, id,
          unknown);
  }
  return unknown;
}

}  // namespace

std::unique_ptr<Tokenizer> make_gguf_sentencepiece(const formats::GgufMetadata& metadata,
                                                   const GgufVocabulary& vocabulary) {
  constexpr const char* charsmap_key = "tokenizer.ggml.precompiled_charsmap";
  CHECK(!metadata.has(charsmap_key), "{}: {} is not supported with a 'llama' vocabulary", vocabulary.where,
        charsmap_key);
  SentencePieceModel model;
  model.pieces = read_pieces(vocabulary, read_scores(metadata, vocabulary.tokens.size()));
  model.unknown = find_unknown(metadata, vocabulary);
  model.pieces[static_cast<std::size_t>(model.unknown)].type = PieceType::unknown;
  model.byte_fallback =
      std::find(vocabulary.types.begin(), vocabulary.types.end(), PieceType::byte) != vocabulary.types.end();
  model.add_dummy_prefix = metadata.boolean("tokenizer.ggml.add_space_prefix", true);
  model.remove_extra_whitespaces = metadata.boolean("tokenizer.ggml.remove_extra_whitespaces", false);
  model.bos = vocabulary.bos;
  model.eos = read_token_id(metadata, "tokenizer.ggml.eos_token_id", model.pieces.size());
  model.padding = read_token_id(metadata, "tokenizer.ggml.padding_token_id", model.pieces.size());

  SentencePieceSettings settings;
  settings.where = vocabulary.where;
  settings.source = "GGUF";
  settings.adds_bos = metadata.boolean("tokenizer.ggml.add_bos_token", true);
  if (model.bos) settings.bos_piece = model.pieces[static_cast<std::size_t>(*model.bos)].text;
  return make_sentencepiece(serialise(model), std::move(settings));
}

}  // namespace gainlens::tokenizers
