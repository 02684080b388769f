#pragma once

#include "core/error.h"
#include "reports/figures/palette.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gainlens::reports {

/// gnuplot commands in the one style of the report's figures.
class PlotScript {
 public:
  /// Resets gnuplot and sets the style.
  PlotScript();

  template <typename... Args>
  PlotScript& line(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...);
    text_ += '\n';
    return *this;
  }

  /// Data block `$name`; NaN is a missing value.
  PlotScript& data(std::string_view name, const std::vector<std::vector<double>>& rows);
  /// Logarithmic x axis over context lengths with ticks such as 1k, 4k. Labels that would touch their neighbour are
  /// left out.
  /// @param width  of the panel, inches
  PlotScript& length_axis(std::span<const std::int64_t> lengths, double width);
  /// Linear x axis from `low` to `high` with a margin and at most six ticks; a point's surroundings where they are
  /// equal.
  PlotScript& value_axis(double low, double high);
  /// Linear y axis from `low` to `high` with at most six ticks, and room above for a share `headroom` of the reach.
  PlotScript& y_axis(double low, double high, double headroom);
  /// viridis.
  PlotScript& viridis();
  /// viridis over layer numbers; the colour bar itself is the figure's affair.
  PlotScript& layer_colours(double first, double last);
  /// The same for layers that are not neighbours: of at most eight each has a colour, at layer_colour(layers, layer) of
  /// the range.
  PlotScript& layer_colours(const std::vector<std::int64_t>& layers);
  /// Starts panel number `index` (a, b, ...) with its title, left above the axes. Leaves labels of earlier panels
  /// behind.
  PlotScript& panel(std::size_t index, std::string_view title);

  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// Mean width of a character at the figures' font size, and the least gap between two labels; inches.
inline constexpr double character_width = 0.062, label_gap = 0.05;

/// At most this many layers have a colour each.
inline constexpr std::size_t max_layer_colours = 8;

/// viridis from low to high, "#rrggbb".
std::span<const std::string_view> viridis_colours();
/// The command that sets a palette of these colours: without steps, or in `steps` steps of one colour each.
/// @param colours  at least two, "#rrggbb"
std::string palette_command(std::span<const std::string_view> colours, std::size_t steps = 0);

/// Where a layer lies in the colours of layer_colours(layers).
/// @param layers  sorted, each once; one of them is `layer`
double layer_colour(const std::vector<std::int64_t>& layers, std::int64_t layer);

/// Text from a file for a gnuplot string in double quotes: nothing in it is markup.
std::string plain(std::string_view text);

}  // namespace gainlens::reports
