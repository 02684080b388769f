#pragma once

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

}  // namespace gainlens::reports
