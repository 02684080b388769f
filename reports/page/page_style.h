#pragma once

#include <string>
#include <string_view>

namespace gainlens::reports {

/// <head> of report.html with its style sheet, up to the opened <main>.
std::string page_head(const std::string& title);

/// Whether a file begins as pages of gainlens do.
bool is_own_page(std::string_view text);

}  // namespace gainlens::reports
