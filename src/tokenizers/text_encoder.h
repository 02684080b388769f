#pragma once

#include "tokenizers/tokenizer.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::tokenizers {

/// Encodes a text that is given in parts. The ids are exactly those of the whole text: it is cut only where the
/// tokenizer can prove that no token crosses (Tokenizer::last_cut). Beside the ids, it takes memory for the text from
/// the last cut on.
///
/// A text without a cut is held whole, and so is one whose tokenizer cannot continue at a cut. It is refused if
/// encoding it would take more memory than is available.
class TextEncoder {
 public:
  struct Options {
    std::string where;                         ///< names the text in messages
    std::optional<std::size_t> enough;         ///< ids that are needed from the start of the text; absent: all
    std::size_t part = std::size_t{16} << 10;  ///< bytes that are encoded at once; larger parts are slower
  };
  TextEncoder(const Tokenizer& tokenizer, Options options);

  /// Takes the next part of the text; whole characters. Once there are enough ids, more text changes nothing.
  /// @throws InvalidArgument  as Tokenizer::encode; too long without a cut
  void add(std::string_view text);
  /// Ends the text. Called once.
  /// @return whether the ids are those of the whole text
  bool finish();

  bool has_enough() const { return options_.enough && size_ >= *options_.enough; }
  /// The ids of the text, or of its start (at least `enough`, where the text has so many). Leaves none here.
  std::vector<TokenId> take();

 private:
  void encode_to(std::size_t end);
  void encode_what_is_certain();
  void check_memory() const;

  const Tokenizer& tokenizer_;
  Options options_;
  std::string text_;       // from the last cut on, with the character before it
  std::size_t begin_ = 0;  // of the text that is not yet encoded
  std::size_t want_;       // bytes at which a cut is looked for next
  std::size_t size_ = 0;   // of all blocks
  std::vector<std::vector<TokenId>> blocks_;
};

/// The ids of a text that is in memory, encoded in parts.
/// @param where  names the text in messages
std::vector<TokenId> encode_in_parts(const Tokenizer& tokenizer, std::string_view text, std::string where);

}  // namespace gainlens::tokenizers
