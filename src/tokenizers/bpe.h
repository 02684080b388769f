#pragma once

#include "tokenizers/vocabulary.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace gainlens::tokenizers {

struct BpeOptions {
  std::optional<std::string> unknown_token;
  bool fuse_unknown = false;  ///< unknown characters in a row become one unknown token
  /// An unknown character becomes its bytes, tokens <0x00> to <0xFF>, if there is a token for each of its bytes.
  bool byte_fallback = false;
  bool ignore_merges = false;  ///< a word that is a token as a whole is not split
};

/// Byte-pair encoding of words. A word starts as characters. Then the pair whose merge comes first in the list is
/// merged, the leftmost one on ties, until no merge applies. The order is exactly that of Hugging Face's `tokenizers`.
/// The time is O(n log n) in the length of the word.
class Bpe {
 public:
  using Merge = std::pair<std::string, std::string>;
  /// Words that were encoded before. Each thread needs its own.
  using Cache = std::unordered_map<std::string, std::vector<TokenId>, TextHash, std::equal_to<>>;

  /// @param merges  in order of rank
  /// @param where   names the file in messages
  /// @throws InvalidArgument  a side or the result of a merge is not a token
  Bpe(Vocabulary vocabulary, const std::vector<Merge>& merges, BpeOptions options, std::string where);

  /// Appends the ids of a word.
  /// @param word  valid UTF-8, shorter than 2^31 bytes
  /// @throws InvalidArgument  a character that is not in the vocabulary, if there is no unknown token
  void encode(std::string_view word, Cache& cache, std::vector<TokenId>& ids) const;

  /// Whether a word can be cut between these two characters: the ids of the whole are those of the two parts.
  bool always_cut(char32_t left, char32_t right) const;

  const Vocabulary& vocabulary() const { return vocabulary_; }

 private:
  struct Ranked {
    std::int32_t rank;
    TokenId merged;
  };
  class Merging;

  void add_merge(const Merge& merge, std::size_t rank);
  void note_neighbours(std::string_view token);
  bool never_joined(char32_t left, char32_t right) const;
  void encode_piece(std::string_view piece, Cache& cache, std::vector<TokenId>& ids) const;
  std::vector<TokenId> initial_symbols(std::string_view piece) const;
  bool append_bytes(std::string_view character, std::vector<TokenId>& symbols) const;
  TokenId unknown_id(char32_t character) const;
  const Ranked* find_merge(TokenId left, TokenId right) const;

  Vocabulary vocabulary_;
  BpeOptions options_;
  std::string where_;
  std::unordered_map<char32_t, TokenId> characters_;  ///< tokens of one character
  std::unordered_map<std::uint64_t, Ranked> merges_;  ///< by (left id, right id)
  std::unordered_set<std::uint64_t> neighbours_;      ///< character pairs inside some merged token
  std::vector<std::optional<TokenId>> bytes_;         ///< ids of <0x00> to <0xFF>
  bool bytes_stay_ = false;  ///< an unknown character becomes its bytes, and no merge takes one of these
};

/// A merge in the form "a b".
/// @param where  names the line in messages
/// @throws InvalidArgument  not two tokens with one space between
Bpe::Merge parse_merge(std::string_view line, std::string_view where);

}  // namespace gainlens::tokenizers
