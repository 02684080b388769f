#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gainlens::reports {

/// A page's script has no more bytes.
inline constexpr std::size_t max_script_bytes = 20000;

/// The script of every page: the files of reports/page/script, joined by its join.cmake without comments and blanks,
/// and with short names. It makes tables sortable and fills the parts of the page that need it: see embedded_data.h. A
/// page without it shows everything else.
std::string_view page_script();

/// The source expression that allows this script, and no other, in a content policy: "sha256-...".
/// Source: W3C, Content Security Policy Level 3, "Hash sources".
std::string script_source(std::string_view script);

}  // namespace gainlens::reports
