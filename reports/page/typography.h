#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gainlens::reports {

/// Plain text of ours for a medium, with the report's symbols set as mathematics: n_eff, lambda_obs or λ_obs, λ*,
/// T_min, K, T, S, r, p, d, σ₀². Every other character means itself: nothing is markup. For text from a file:
/// escape_html() and escape_latex(), which set no symbols.
std::string to_html(std::string_view text);
std::string to_latex(std::string_view text);
/// A text as a gnuplot string in enhanced mode.
std::string to_plot(std::string_view text);

/// Text as HTML content or attribute value: no character of it is markup.
std::string escape_html(std::string_view text);
/// A paragraph of HTML for each text, escaped.
std::string paragraphs_of(const std::vector<std::string>& texts);
/// Text for LaTeX: no character of it is markup. Characters beyond ASCII stay (UTF-8), but for those our texts use,
/// which become commands.
std::string escape_latex(std::string_view text);

}  // namespace gainlens::reports
