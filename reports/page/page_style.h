#pragma once

#include <string>
#include <string_view>

namespace gainlens::reports {

/// <head> of report.html with its style sheet and content policy, up to the opened <main>.
std::string page_head(const std::string& title);

/// From the end of <main> to the end of the file, with the page's script.
std::string page_end();

/// Whether a file begins as pages of gainlens do.
bool is_own_page(std::string_view text);

}  // namespace gainlens::reports
