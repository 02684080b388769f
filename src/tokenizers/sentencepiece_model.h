#pragma once

#include "tokenizers/tokenizer.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::tokenizers {

/// What a piece is to SentencePiece, by the numbers of its model file (GGUF uses the same).
enum class PieceType : std::uint8_t { normal = 1, unknown, control, user_defined, unused, byte };

struct Piece {
  std::string text;  ///< UTF-8, spaces as U+2581
  float score = 0;   ///< merges with larger scores come first
  PieceType type = PieceType::normal;
};

/// A vocabulary of pieces merged by score (SentencePiece's BPE), as stored in a `tokenizer.model`. The text is not
/// normalised.
struct SentencePieceModel {
  std::vector<Piece> pieces;              ///< by id
  bool byte_fallback = false;             ///< unknown characters become bytes; needs all 256 byte pieces
  bool add_dummy_prefix = true;           ///< puts a space before the text
  bool remove_extra_whitespaces = false;  ///< removes spaces at both ends, and all but one in a row
  TokenId unknown = 0;                    ///< the one piece of type unknown
  std::optional<TokenId> bos, eos, padding;
};

/// The bytes of a `ModelProto`, for SentencePiece to load. Checks nothing: the library does that. Source:
/// sentencepiece_model.proto of google/sentencepiece; encoding: protobuf.dev, "Encoding".
std::string serialise(const SentencePieceModel& model);

/// What makes the library leave its arrays, or take memory without bound, for the bytes of a `ModelProto`; empty if
/// nothing does. It walks the map of characters (a double array, and the texts that it names) without looking at sizes,
/// and has room for so many pieces that begin with each other. What else can be wrong it finds itself.
std::string fault_of(std::string_view model);

/// The model without the texts by which it can test itself: the library would print those that fail as they are.
std::string without_self_test(std::string_view model);

/// What decides whether a text can be encoded in parts.
struct SentencePieceFacts {
  enum class Algorithm : std::uint8_t { unigram = 1, bpe, word, character };
  Algorithm algorithm = Algorithm::unigram;
  bool byte_fallback = false;
  /// The text is not changed, but for a space that is put before it and the sign for spaces.
  bool plain = false;
};

/// Reads these from the bytes of a `ModelProto` that the library has accepted.
SentencePieceFacts read_facts(std::string_view model);

}  // namespace gainlens::tokenizers
