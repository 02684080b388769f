#pragma once

#include <string_view>

namespace gainlens::analyses {

/// What the token of a sink is, by its text. The first that fits holds.
enum class TokenClass {
  bos,        ///< the BOS token of the run
  delimiter,  ///< punctuation alone, or a token such as "</s>" or "<|endoftext|>"
  newline,    ///< white space with a line break
  space,      ///< other white space
  digit,      ///< digits, perhaps after a space
  rare,       ///< any other text that is a sink at a single position of a single chunk of its length
  common,     ///< any other text that is a sink at several positions; and tokens whose text is not known
};
inline constexpr TokenClass token_classes[] = {TokenClass::bos,   TokenClass::delimiter, TokenClass::newline,
                                               TokenClass::space, TokenClass::digit,     TokenClass::rare,
                                               TokenClass::common};
std::string_view name_of(TokenClass token_class);  ///< "newline"

/// The class of a text by itself: `common` for a word, however often it occurs, for "" and for what is not UTF-8.
/// Spaces at both ends do not count beside other characters, and U+2581 is a space.
TokenClass class_of_text(std::string_view text);

}  // namespace gainlens::analyses
