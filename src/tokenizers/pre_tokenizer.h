#pragma once

#include "tokenizers/json_node.h"

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace gainlens::tokenizers {

/// Where a normalised text stands in the whole one.
struct TextPlace {
  bool at_start = false;   ///< it starts where the whole text starts
  bool continues = false;  ///< it starts at a cut (PreTokenizer::last_cut): nothing is put before it
};

/// Cuts a normalised text into words; merges never cross from one into the next.
class PreTokenizer {
 public:
  /// Takes one word; `at_start` tells whether it starts where the whole text starts.
  using Sink = std::function<void(std::string_view word, bool at_start)>;

  virtual ~PreTokenizer() = default;
  /// Hands the words of `text` (valid UTF-8) to `sink` in order. Empty words are left out.
  /// @throws InvalidArgument  a pattern's match limit is reached
  virtual void apply(std::string_view text, TextPlace place, const Sink& sink) const = 0;
  /// The last p, 0 < p <= most, where `text` can be cut: whatever follows it, the words are those of text[0, p) alone
  /// and then those of the rest, as a text that continues. 0 if there is none, or none is found.
  virtual std::size_t last_cut(std::string_view /*text*/, TextPlace /*place*/, std::size_t /*most*/) const { return 0; }
  /// Whether a text can be cut between two characters within a word, so that only this word is cut in two, wherever the
  /// characters stand.
  /// @return the two characters as they are in the word; nothing if the text cannot be cut there, or it is not known
  virtual std::optional<std::pair<char32_t, char32_t>> within_word(char32_t /*left*/, char32_t /*right*/) const {
    return std::nullopt;
  }
};

/// The `pre_tokenizer` of tokenizer.json: ByteLevel, Split, Metaspace, Digits, Punctuation, Whitespace,
/// WhitespaceSplit, UnicodeScripts, Sequence. Punctuation and Whitespace use the Unicode tables of PCRE2; the reference
/// has older tables for punctuation.
/// @return null for a null node
/// @throws InvalidArgument  another type or field, named together with `--tokens`
std::unique_ptr<PreTokenizer> make_pre_tokenizer(const JsonNode& node);

/// GPT-2's pre-tokenizer: cuts by its pattern of words (if `use_pattern`), then writes bytes as characters.
std::unique_ptr<PreTokenizer> make_byte_level(bool add_prefix_space, bool use_pattern);

}  // namespace gainlens::tokenizers
