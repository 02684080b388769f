#pragma once

#include <string>
#include <string_view>

namespace gainlens::reports {

/// An SVG of render() for use inside an HTML page: without prolog, size and style sheet, which are the page's; its ids
/// made the figure's own (several figures share one page), with a description for readers who do not see it, and with
/// fonts of the same widths as a fallback.
/// @param name  of the figure: letters, digits, '-' and '_'
std::string inline_svg(std::string_view svg, std::string_view name, std::string_view description);

}  // namespace gainlens::reports
