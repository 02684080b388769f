#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace gainlens::tokenizers {

/// Rewrites a pattern in Oniguruma's (Ruby) syntax, which tokenizer.json uses, for PCRE2 with UTF and MULTILINE, so
/// that it means the same.
///
/// The classes \s \w \d \h are written out, because the two libraries differ in some characters. Sets inside sets and
/// intersections (`[\p{L}&&[^\p{Han}]]`) become one class, or lookaheads. Constructs that both accept but read
/// differently are refused: `{1,3}+`, operations on sets that ignore case, options in mid-pattern, \b, back-references,
/// named groups.
/// @param where      names the file and entry in messages
/// @param is_script  whether this is the name of a script (\p{Han}). For scripts, PCRE2 has to be told not to match
///     script extensions
/// @throws InvalidArgument  a construct that is not supported; the message names it and `--tokens`
std::string pcre2_from_oniguruma(std::string_view pattern, std::string_view where,
                                 const std::function<bool(std::string_view)>& is_script);

}  // namespace gainlens::tokenizers
