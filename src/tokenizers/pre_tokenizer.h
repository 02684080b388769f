#pragma once

#include "tokenizers/json_node.h"

#include <functional>
#include <memory>
#include <string_view>

namespace gainlens::tokenizers {

/// Cuts a normalised text into words; merges never cross from one into the next.
class PreTokenizer {
 public:
  /// Takes one word; `at_start` tells whether it starts where the whole text starts.
  using Sink = std::function<void(std::string_view word, bool at_start)>;

  virtual ~PreTokenizer() = default;
  /// Hands the words of `text` (valid UTF-8) to `sink` in order. Empty words are left out.
  /// @throws InvalidArgument  a pattern's match limit is reached
  virtual void apply(std::string_view text, bool at_start, const Sink& sink) const = 0;
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
