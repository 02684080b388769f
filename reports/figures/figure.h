#pragma once

#include "core/json.h"
#include "reports/measured.h"

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::reports {

/// Widths of a paper's figures, inches.
inline constexpr double column_width = 3.33;
inline constexpr double page_width = 6.9;

/// A figure as gnuplot commands that hold their own data.
struct Figure {
  std::string name;    ///< stem of its files
  double width;        ///< inches: column_width or page_width, at which its smallest text has 7 pt
  double height;       ///< inches
  std::string script;  ///< from data to plot; terminal and output are set around it
};

/// How figures are drawn, as far as a user may choose it: a journal's font, widths and colours. What is empty stays as
/// it is.
struct Style {
  std::string font = "DejaVu Sans";
  double font_size = 7.05;                      ///< points, of the smallest text
  double column_width = reports::column_width;  ///< inches; figures keep their proportions
  double page_width = reports::page_width;
  std::map<std::string, std::string> colours;  ///< name in the palette -> "#rrggbb"
  std::vector<std::string> map_colours;        ///< "#rrggbb" from low to high, of maps and of layers
  std::vector<std::string> formats = {"svg", "pdf", "png"};
  std::vector<std::string> figures;  ///< stems of the figures to draw; empty: all
};

inline constexpr std::string_view figure_formats[] = {"svg", "pdf", "png"};

/// Pixels of a figure, 96 to the inch: the unit of its terminal.
int pixels(double inches);

/// Writes <name>.svg, <name>.png and <name>.pdf into `folder`: the same bytes for the same script and the same gnuplot,
/// fonts and librsvg. The SVG has no ground of its own and follows a reader's light or dark scheme; PDF and PNG are
/// light.
/// The SVG is written whatever the formats, because a page needs it.
/// @return names of the files of the style's formats
/// @throws RunFailed  gnuplot or rsvg-convert is missing, or fails
std::vector<std::string> render(const Figure& figure, const std::filesystem::path& folder, const Style& style = {});

/// Reads a style: a JSON object with some of the members of Style as its keys.
/// @throws InvalidArgument  no JSON object; a key that is not known (the nearest is named); a value of the wrong type
///     or out of range. The message begins with the file and the key
Style read_style(const std::filesystem::path& file);

/// The figure with the style's width and map colours.
Figure styled(const Figure& figure, const Style& style);
/// gnuplot's SVG with the style's colours for those of the palette.
/// @param svg  with colours in one notation
std::string with_colours(std::string_view svg, const Style& style);

}  // namespace gainlens::reports
