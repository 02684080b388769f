#include "tokenizers/unicode_scripts.h"

#include "tokenizers/code_points.h"

#include <unicode/uchar.h>
#include <unicode/uscript.h>

#include <optional>

namespace gainlens::tokenizers {
namespace {

bool is_older_than_unicode_10(char32_t code_point) {
  UVersionInfo age;
  u_charAge(static_cast<UChar32>(code_point), age);
  return age[0] < 10;
}

/// Nothing for characters that belong to the piece before them.
std::optional<UScriptCode> script_of(char32_t code_point) {
  switch (code_point) {
    case U' ':
      return std::nullopt;
    case U'\u30FC':  // the sign of a long vowel; Common
      return USCRIPT_HAN;
    // Later versions of Unicode changed the scripts of these.
    case U'\u0589':
    case U'\u061C':
      return USCRIPT_COMMON;
    case U'\u0953':
    case U'\u0954':
      return USCRIPT_DEVANAGARI;
    default:
      break;
  }
  UErrorCode error = U_ZERO_ERROR;
  const UScriptCode script = uscript_getScript(static_cast<UChar32>(code_point), &error);
  if (U_FAILURE(error) || script == USCRIPT_UNKNOWN || !is_older_than_unicode_10(code_point)) return std::nullopt;
  return script == USCRIPT_HIRAGANA || script == USCRIPT_KATAKANA ? USCRIPT_HAN : script;
}

}  // namespace

std::vector<Span> script_pieces(std::string_view text) {
  std::vector<Span> pieces;
  std::optional<UScriptCode> last;
  for (std::size_t position = 0; position < text.size();) {
    const std::size_t begin = position;
    const auto script = script_of(next_code_point(text, position));
    if (script && script != last) {
      if (!pieces.empty()) pieces.back().end = begin;
      pieces.push_back({begin, text.size(), false});
      last = script;
    }
  }
  return pieces;
}

}  // namespace gainlens::tokenizers
