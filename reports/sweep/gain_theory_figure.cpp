#include "reports/sweep/gain_theory_figure.h"

#include "analyses/gain_theory.h"
#include "reports/figures/figure_parts.h"
#include "reports/sweep/run_words.h"
#include "reports/sweep/sections.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>

namespace gainlens::reports {
namespace {

using analyses::GainTheory;
using analyses::GainTheoryPoint;

/// tokens, K, ends of its interval, predicted K, constant K, scaled K
Rows gain_rows(const GainTheory& theory, std::size_t run, std::size_t runs) {
  constexpr double no_value = std::numeric_limits<double>::quiet_NaN();
  const double constant = mean_or_nan(theory.points.front().kalman_gain);
  Rows rows;
  for (const GainTheoryPoint& point : theory.points) {
    const bool interval = point.kalman_gain && point.kalman_gain->interval;
    rows.push_back({aside(static_cast<double>(point.length.tokens), run, runs), mean_or_nan(point.kalman_gain),
                    interval ? point.kalman_gain->interval->low : no_value,
                    interval ? point.kalman_gain->interval->high : no_value, value_or_nan(point.predicted_gain),
                    constant, mean_or_nan(point.kalman_gain_scaled)});
  }
  return rows;
}

/// tokens, error of the theory, of the constant (%)
Rows error_rows(const GainTheory& theory, std::size_t run, std::size_t runs) {
  Rows rows;
  for (const GainTheoryPoint& point : theory.points) {
    if (!point.relative_error) continue;
    rows.push_back({aside(static_cast<double>(point.length.tokens), run, runs), 100 * *point.relative_error,
                    100 * *point.constant_error});
  }
  return rows;
}

std::string gain_series(const std::string& block, const Rows& rows, std::size_t run, bool one) {
  const RunStyle& style = run_style(run);
  const std::string_view theory_colour = one ? colour::vermillion : style.colour;
  std::string plot;
  if (one) {
    plot += fmt::format(
        "${} using 1:6 with linespoints pointtype 2 pointsize 0.5 linewidth 1.1 dashtype 3 linecolor rgb '{}' "
        "notitle, ",
        block, colour::grey);
  }
  plot += fmt::format("${} using 1:5 with lines linewidth 1.3 dashtype {} linecolor rgb '{}' notitle, ", block,
                      style.dash, theory_colour);
  if (any_finite(rows, 2))
    plot += fmt::format("${} using 1:3:(0):($4-$3) with vectors nohead linewidth 1.2 linecolor rgb '{}' notitle, ",
                        block, colour::ink);
  plot += fmt::format("${} using 1:2 with points pointtype {} pointsize 0.6 linecolor rgb '{}' notitle", block,
                      style.marker, style.colour);
  return plot;
}

std::string scaled_series(const std::string& block, std::size_t run, bool one) {
  const RunStyle& style = run_style(run);
  return fmt::format(
      "${} using 1:7 with linespoints pointtype {} pointsize 0.5 linewidth 1.1 dashtype {} linecolor rgb '{}' notitle",
      block, one ? 9 : style.marker, one ? 2 : style.dash, one ? colour::green : style.colour);
}

/// What the panels plot, and the reach of their axes.
struct Plots {
  std::string gains, scaled, errors;
  std::map<std::string, Rows> blocks;
  Extent gain_range, scaled_range, error_range{0, 0};
};

std::string error_series(const std::string& block, std::size_t run, bool one) {
  const RunStyle& style = run_style(run);
  return fmt::format(
      "${0} using 1:3 with linespoints pointtype {1} pointsize 0.55 linewidth 1.1 dashtype 3 linecolor rgb '{2}' "
      "notitle, "
      "${0} using 1:2 with linespoints pointtype {3} pointsize 0.55 linewidth 1.3 dashtype {4} linecolor rgb '{5}' "
      "notitle",
      block, one ? 2 : style.hollow_marker, one ? colour::grey : style.colour, style.marker, style.dash,
      one ? colour::vermillion : style.colour);
}

void add(std::string& plot, const std::string& series) {
  plot += (plot.empty() ? "" : ", ") + series;
}

Plots collect(Runs runs) {
  Plots plots;
  const bool one = runs.size() == 1;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    const GainTheory& theory = runs[run].of(analyses::gain_theory);
    if (!theory.max_relative_error) continue;
    const Rows gain = gain_rows(theory, run, runs.size()), error = error_rows(theory, run, runs.size());
    const std::string gain_block = fmt::format("gains_{}", run), error_block = fmt::format("errors_{}", run);
    add(plots.gains, gain_series(gain_block, gain, run, one));
    plots.gain_range.add(gain, {1, 2, 3, 4});
    if (any_finite(gain, 6)) {
      add(one ? plots.gains : plots.scaled, scaled_series(gain_block, run, one));
      (one ? plots.gain_range : plots.scaled_range).add(gain, {6});
    }
    add(plots.errors, error_series(error_block, run, one));
    plots.error_range.add(error, {1, 2});
    plots.blocks.insert({{gain_block, gain}, {error_block, error}});
  }
  return plots;
}

/// One run: its series, which have no names of their own in the panels. Several: the runs.
std::vector<LegendEntry> legend_of(Runs runs) {
  if (runs.size() > 1) return name_runs(labels_of(runs));
  return {{"measured", colour::blue, 7, 0},
          {"theory, λ fitted at {/:Italic T}_{min}", colour::vermillion, 0, 1},
          {"measured, scaled values", colour::green, 9, 2},
          {"constant {/:Italic K}", colour::grey, 2, 3}};
}

}  // namespace

Maybe<Figure> gain_theory_figure(Runs runs) {
  const bool one = runs.size() == 1;
  const Plots plots = collect(runs);
  if (plots.gains.empty())
    return Maybe<Figure>::none(runs.front().of(analyses::gain_theory).max_relative_error.reason());
  PanelGrid grid{one ? column_width : page_width, one ? 3.1 : 2.05};
  grid.rows = one ? 2 : 1;
  grid.columns = one ? 1 : plots.scaled.empty() ? 2 : 3;
  grid.left = 0.5;
  grid.across = 0.6;
  PanelFigure script(grid, legend_of(runs));
  for (const auto& [name, rows] : plots.blocks) script.data(name, rows);
  script.length_axis(drawn_lengths(runs), grid.panel_width());
  std::size_t panel = 0;
  script.panel(panel++, one ? "Kalman gain {/:Italic K}" : "{/:Italic K}: measured, and theory (lines)");
  script.line("unset key");
  script.y_axis(plots.gain_range.low, plots.gain_range.high, 0.06).line("plot {}", plots.gains);
  if (!plots.scaled.empty()) {
    script.panel(panel++, "{/:Italic K} of scaled values")
        .y_axis(plots.scaled_range.low, plots.scaled_range.high, 0.06);
    script.line("plot {}", plots.scaled);
  }
  script.panel(panel++, one ? "error relative to measured {/:Italic K} (%)" : "relative error (%)");
  script.y_axis(0, plots.error_range.high, 0.08).line("plot {}", plots.errors);
  return script.figure("gain-theory");
}

}  // namespace gainlens::reports
