#pragma once

#include "core/json.h"
#include "reports/figures/figure.h"

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::reports {

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

/// Reads a style: a JSON object with some of the members of Style as its keys.
/// @throws InvalidArgument  no JSON object; a key that is not known (the nearest is named); a value of the wrong type
/// or
///     out of range. The message begins with the file and the key
Style read_style(const std::filesystem::path& file);

/// The figure with the style's width and map colours.
Figure styled(const Figure& figure, const Style& style);
/// gnuplot's SVG with the style's colours for those of the palette.
/// @param svg  with colours in one notation
std::string with_colours(std::string_view svg, const Style& style);

}  // namespace gainlens::reports
