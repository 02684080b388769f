#pragma once

#include "reports/made_report.h"

#include <map>
#include <string>

namespace gainlens::reports {

/// SVG of each figure by its name.
using RenderedFigures = std::map<std::string, std::string>;

/// report.html: one file that needs nothing else, neither files nor network nor scripts. It is light or dark as the
/// reader's system says, and light in print. Figures and tables are numbered as they come. A section that could not be
/// made says why.
std::string report_page(const MadeReport& report, const RenderedFigures& figures);

}  // namespace gainlens::reports
