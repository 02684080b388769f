#pragma once

#include <string_view>

namespace gainlens {

/// Whether a spreadsheet would take a text for a formula: it begins with = + - @ (or their full-width forms), a tab or
/// a line end, and is no number; or with apostrophes and then such a character. In CSV files of gainlens such a text
/// has an apostrophe in front, which a spreadsheet does not show.
bool looks_like_formula(std::string_view text);

/// The text of a field of such a file, without the apostrophe that was put in front of it.
std::string_view without_formula_mark(std::string_view text);

}  // namespace gainlens
