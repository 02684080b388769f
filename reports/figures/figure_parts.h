#pragma once

#include "analyses/cells.h"
#include "reports/figures/figure.h"
#include "reports/figures/plot_script.h"

#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::reports {

/// Rows of a data block.
using Rows = std::vector<std::vector<double>>;

inline constexpr std::size_t max_panels = 26;
inline constexpr double no_value = std::numeric_limits<double>::quiet_NaN();  ///< what rows say where they have none

/// NaN where it is missing.
double value_or_nan(const Measured& value);
double mean_or_nan(const Maybe<analyses::Aggregate>& value);
bool any_finite(const Rows& rows, std::size_t column);

/// Ends of an axis; what is not finite does not move them.
struct Extent {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
  void add(double value);
  void add(const Rows& rows, std::initializer_list<std::size_t> columns);
};

struct RunStyle;
/// Sizes of a curve with bars, in gnuplot's units.
struct BarredCurve {
  double bar_width, point_size, line_width;
};
/// A row of a barred curve: x, y, and the ends of its bar, NaN without one.
std::vector<double> barred_point(double x, double y, const Maybe<Interval>& bar);
/// Elements of a "plot" command, each with a comma behind it: a curve through column 2, and bars from column 3 to 4
/// where some row has them.
/// @param block  name of the data
std::string barred_curve(std::string_view block, const Rows& rows, const RunStyle& style, const BarredCurve& sizes);

/// Where the panels of a figure stand; inches.
struct PanelGrid {
  double width;
  double height;
  int rows = 1;
  int columns = 1;
  double left = 0.45;
  double right = 0.08;
  double top = 0.26;
  double bottom = 0.38;
  double across = 0.52;  ///< between columns
  double down = 0.62;    ///< between rows

  double panel_width() const { return (width - left - right - across * (columns - 1)) / columns; }
  double panel_height() const { return (height - top - bottom - down * (rows - 1)) / rows; }
};

/// A name below the panels, with what it stands for.
struct LegendEntry {
  std::string name;  ///< gnuplot's markup: see plain()
  std::string_view colour;
  int marker = 0;  ///< gnuplot's point type; 0: no marker
  int dash = 0;    ///< gnuplot's dash type; 0: no line
};
/// How a legend shows runs: by marker and dash, or in figures without lines by marker alone.
enum class LegendMark { line_and_marker, marker };
/// One run in its style (palette.h).
LegendEntry name_run(const std::string& label, std::size_t style, LegendMark mark = LegendMark::line_and_marker);
/// The runs of these labels, each in the style of its place.
/// @param labels  empty: no legend
std::vector<LegendEntry> name_runs(std::span<const std::string> labels, LegendMark mark = LegendMark::line_and_marker);

/// A figure of panels, row by row, with a legend below them.
class PanelFigure : public PlotScript {
 public:
  /// Starts the panels.
  /// @param grid  without the legend, for which the figure gets room
  explicit PanelFigure(const PanelGrid& grid, const std::vector<LegendEntry>& legend = {});
  /// Starts a panel as a PlotScript does; the first one draws the legend.
  PlotScript& panel(std::size_t index, std::string_view title);
  /// Draws the legend of a first panel that has a title of its own. To be called between the title and the plot: what
  /// it sets goes with that panel's labels.
  void draw_legend();
  /// Ends the panels. @param name  stem of its files
  Figure figure(const std::string& name);

 private:
  PanelGrid grid_;
  std::vector<LegendEntry> legend_;
};

/// Why more than max_runs of something are not drawn: "7 arms; 6 can be told apart in one figure".
/// @param what  "arms"
Maybe<Figure> too_many(std::size_t count, std::string_view what);

/// Moves point `x` of one run aside on a logarithmic axis, so that the intervals of several runs do not cover each
/// other.
double aside(double x, std::size_t run, std::size_t runs);

}  // namespace gainlens::reports
