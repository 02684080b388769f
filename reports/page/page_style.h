#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gainlens::reports {

/// What a page is about, as its title: "gemma-3-270m on wiki.test.txt – gainlens". Unescaped.
/// @param what  a model, an arm, a comparison
/// @param on    a text, a data set; empty: there is none, or it is not known
std::string page_title(std::string_view what, std::string_view on = {});

/// <head> of report.html with its style sheet and content policy, up to the opened <main>.
std::string page_head(const std::string& title);

/// What follows the end of <main>, with the page's script.
std::string page_end();

/// Whether a file begins as pages of gainlens do.
bool is_own_page(std::string_view text);

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
