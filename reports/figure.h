#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::reports {

/// A figure as gnuplot commands that hold their own data.
struct Figure {
  std::string name;  ///< stem of its files
  int width;         ///< pixels of the SVG, 96 to the inch; the PNG has twice as many
  int height;
  std::string script;  ///< from data to plot; terminal and output are set around it
};

/// Writes <name>.svg, <name>.png and <name>.pdf into `folder`: the same bytes for the same script and the same gnuplot, fonts and librsvg.
/// @return file names
/// @throws RunFailed  gnuplot or rsvg-convert is missing, or fails
std::vector<std::string> render(const Figure& figure, const std::filesystem::path& folder);

inline constexpr std::string_view figure_formats[] = {"svg", "pdf", "png"};

}  // namespace gainlens::reports
