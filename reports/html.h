#pragma once

#include "reports/tables.h"

#include <string>
#include <string_view>

namespace gainlens::reports {

/// Text as HTML content or attribute value: no character of it is markup.
std::string escape_html(std::string_view text);

/// An SVG of gnuplot's for use inside an HTML page: without prolog, its ids made the figure's own (several figures share one page), with a
/// description for readers who do not see it, and with fonts of the same widths as a fallback.
/// @param name  of the figure: letters, digits, '-' and '_'
std::string inline_svg(std::string_view svg, std::string_view name, std::string_view description);

/// A table with four significant digits. NaN is a dash; p-values and small numbers are in powers of ten.
/// @param headings  shown in place of the table's own; as many
std::string html_table(const Table& table, const std::vector<std::string>& headings);

}  // namespace gainlens::reports
