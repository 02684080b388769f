#pragma once

#include "reports/made_report.h"

#include <map>
#include <string>
#include <string_view>

namespace gainlens::reports {

/// An SVG of render() for use inside an HTML page: without prolog, size and style sheet, which are the page's; its ids
/// made the figure's own (several figures share one page), with a description for readers who do not see it, and with
/// fonts of the same widths as a fallback.
/// @param name  of the figure: letters, digits, '-' and '_'
std::string inline_svg(std::string_view svg, std::string_view name, std::string_view description);

/// SVG of each figure by its name.
using RenderedFigures = std::map<std::string, std::string>;

/// Which sections a page shows. On the page of everything, those for readers of the paper are folded at the end.
enum class PageOf { everything, all_but_paper, paper };

/// report.html or paper.html: one file that needs nothing else, neither files nor network. It has one script, of its
/// own, without which everything but its Section::scripted parts is there. It is light or dark as the reader's system
/// says, and light in print. Figures and tables are numbered as they come. A section that could not be made says why.
std::string report_page(const MadeReport& report, const RenderedFigures& figures, PageOf shown);

}  // namespace gainlens::reports
