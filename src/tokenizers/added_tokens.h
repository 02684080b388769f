#pragma once

#include "tokenizers/tokenizer.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace gainlens::tokenizers {

/// A token that is looked for in the text itself, before the text is cut into words.
struct AddedToken {
  std::string content;
  TokenId id = 0;
  bool single_word = false;  ///< found only where no word character is next to it
  bool left_strip = false;   ///< includes the white space before it
  bool right_strip = false;  ///< includes the white space after it
  bool normalized = false;   ///< looked for in the normalised text
  bool special = false;
};

/// Finds added tokens: at each place the longest, from left to right, without overlap.
class AddedTokenFinder {
 public:
  struct Part {
    std::string_view text;
    std::size_t begin = 0;         ///< byte offset in the searched text
    std::optional<TokenId> token;  ///< nothing: text between tokens
  };

  /// @param written  the text to look for; it differs from the token's content if a normaliser changes that. Of several
  ///     tokens with the same text the first one wins
  void add(const AddedToken& token, std::string_view written);
  bool empty() const { return tokens_.empty(); }

  /// Tokens and the texts between them, without empty texts.
  /// @param text  valid UTF-8; the parts point into it
  std::vector<Part> split(std::string_view text) const;

  /// Whether the search can be cut at a place of a text: whatever follows the text, the tokens found are those of
  /// text[0, place), and then those of the rest.
  /// @param place  between 0 and the end; not within a token or the white space that it takes (see split)
  bool may_cut(std::string_view text, std::size_t place) const;

 private:
  static constexpr std::size_t nothing = ~std::size_t{0};
  struct Match {
    std::size_t begin, end, token;
  };
  struct Node {
    std::unordered_map<unsigned char, std::size_t> next;
    std::size_t token = nothing;
  };
  std::optional<Match> longest_at(std::string_view text, std::size_t begin) const;
  bool stands_alone(std::string_view text, const Match& match) const;

  std::vector<AddedToken> tokens_;
  std::size_t longest_ = 0;                         ///< bytes of the longest text to look for
  bool takes_space_ = false;                        ///< whether any token takes white space beside it
  std::vector<Node> nodes_ = std::vector<Node>(1);  ///< a trie by bytes, the root first
};

}  // namespace gainlens::tokenizers
