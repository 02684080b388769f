#pragma once

#include <string>

namespace gainlens::reports {

/// <head> of report.html with its style sheet, up to the opened <main>.
std::string page_head(const std::string& title);

}  // namespace gainlens::reports
