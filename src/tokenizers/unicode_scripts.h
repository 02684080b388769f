#pragma once

#include "tokenizers/pattern.h"

#include <string_view>
#include <vector>

namespace gainlens::tokenizers {

/// Cuts a text wherever the script changes, as the pre-tokenizer `UnicodeScripts` of Hugging Face's `tokenizers` does:
/// with the scripts of Unicode 9.0, Hiragana and Katakana counted as Han. Spaces and characters that are younger belong
/// to the piece before them. At the start of the text they belong to no piece.
/// @param text  valid UTF-8
/// @return the pieces in order; from the first one on they cover the text
std::vector<Span> script_pieces(std::string_view text);

}  // namespace gainlens::tokenizers
