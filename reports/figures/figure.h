#pragma once

#include "reports/measured.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::reports {

/// Widths of a paper's figures, inches.
inline constexpr double column_width = 3.33;
inline constexpr double page_width = 6.9;

struct Style;

/// A figure as gnuplot commands that hold their own data.
struct Figure {
  std::string name;    ///< stem of its files
  double width;        ///< inches: column_width or page_width, at which its smallest text has 7 pt
  double height;       ///< inches
  std::string script;  ///< from data to plot; terminal and output are set around it
};

/// Pixels of a figure, 96 to the inch: the unit of its terminal.
int pixels(double inches);

/// Writes <name>.svg, <name>.png and <name>.pdf into `folder`: the same bytes for the same script and the same gnuplot,
/// fonts and librsvg. The SVG has no ground of its own and follows a reader's light or dark scheme; PDF and PNG are
/// light.
/// The SVG is written whatever the formats, because a page needs it.
/// @return names of the files of the style's formats
/// @throws RunFailed  gnuplot or rsvg-convert is missing, or fails
std::vector<std::string> render(const Figure& figure, const std::filesystem::path& folder, const Style& style);
/// Draws the figure in the usual style.
std::vector<std::string> render(const Figure& figure, const std::filesystem::path& folder);

inline constexpr std::string_view figure_formats[] = {"svg", "pdf", "png"};

}  // namespace gainlens::reports
