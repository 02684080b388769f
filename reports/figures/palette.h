#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace gainlens::reports {

/// Okabe-Ito: told apart by readers with colour-vision deficiency; their greys differ too.
namespace colour {
inline constexpr std::string_view blue = "#0072B2";
inline constexpr std::string_view vermillion = "#D55E00";
inline constexpr std::string_view green = "#009E73";
inline constexpr std::string_view orange = "#E69F00";
inline constexpr std::string_view purple = "#CC79A7";
inline constexpr std::string_view grey = "#7A7A7A";
inline constexpr std::string_view ink = "#222222";    ///< text, intervals
inline constexpr std::string_view frame = "#333333";  ///< axes
inline constexpr std::string_view faint = "#DDDDDD";  ///< grid lines
inline constexpr std::string_view ground = "#FFFFFF";
}  // namespace colour

/// Of effects, from below 0 to above; 0 is the one in the middle.
inline constexpr std::array<std::string_view, 5> effect_colours = {colour::blue, "#9CC9E3", "#F7F7F7", "#F2B48C",
                                                                   colour::vermillion};

/// How one of several runs is drawn in every figure: colour, marker and dash all differ, so that grey print tells them
/// apart too.
struct RunStyle {
  std::string_view colour;
  int marker;         ///< gnuplot's point type, filled
  int hollow_marker;  ///< the same shape, not filled
  int dash;           ///< gnuplot's dash type
};
inline constexpr std::size_t max_runs = 6;
/// @param run  below max_runs
const RunStyle& run_style(std::size_t run);

/// How one of several layers is drawn: by its dash, in ink, because colours are those of runs.
struct LayerStyle {
  std::string_view colour;
  int dash;  ///< gnuplot's dash type
};
/// @param layer  below max_runs
const LayerStyle& layer_style(std::size_t layer);

/// CSS rules, without media query, that turn the colours above into those for a dark ground.
std::string dark_rules();

/// gnuplot's SVG with its colours in one notation: "#0072b2".
std::string with_one_notation(std::string_view svg);

/// An SVG with its colours in one notation and a style element that follows the reader's light or dark scheme.
std::string with_schemes(std::string_view svg);

}  // namespace gainlens::reports
