#include "reports/figure_parts.h"

#include "reports/results.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace gainlens::reports {
namespace {

constexpr double no_value = std::numeric_limits<double>::quiet_NaN();

// inches
constexpr double legend_line = 0.17, legend_sample = 0.3, legend_gap = 0.22, character_width = 0.062;

/// Characters, not bytes, of UTF-8.
double entry_width(const Results& run) {
  const auto characters =
      std::count_if(run.label.begin(), run.label.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
  return legend_sample + 0.06 + character_width * static_cast<double>(characters);
}

/// The runs of each line of the legend, as many as fit the page's width.
std::vector<std::vector<std::size_t>> legend_lines(std::span<const Results> runs) {
  std::vector<std::vector<std::size_t>> lines;
  double used = page_width;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    const double width = entry_width(runs[run]) + legend_gap;
    if (lines.empty() || used + width > page_width) {
      lines.emplace_back();
      used = 0;
    }
    lines.back().push_back(run);
    used += width;
  }
  return lines;
}

}  // namespace

double value_or_nan(const analyses::Measured& value) {
  return value ? *value : no_value;
}

double mean_or_nan(const analyses::Maybe<analyses::Aggregate>& value) {
  return value ? value->mean : no_value;
}

bool any_finite(const Rows& rows, std::size_t column) {
  for (const auto& values : rows) {
    if (std::isfinite(values[column])) return true;
  }
  return false;
}

void start_panels(PlotScript& script, const PanelGrid& grid) {
  script.line("set multiplot layout {},{} margins {:.5f},{:.5f},{:.5f},{:.5f} spacing {:.5f},{:.5f}", grid.rows, grid.columns,
              grid.left / grid.width, 1 - grid.right / grid.width, grid.bottom / grid.height, 1 - grid.top / grid.height,
              grid.across / grid.width, grid.down / grid.height);
}

double legend_height(std::span<const Results> runs) {
  return runs.size() > 1 ? legend_line * static_cast<double>(legend_lines(runs).size()) + 0.04 : 0;
}

void draw_legend(PlotScript& script, std::span<const Results> runs, double width, double height) {
  if (runs.size() < 2) return;
  const std::vector<std::vector<std::size_t>> lines = legend_lines(runs);
  for (std::size_t line = 0; line < lines.size(); ++line) {
    double entries = -legend_gap;
    for (const std::size_t run : lines[line]) entries += entry_width(runs[run]) + legend_gap;
    double x = 0.5 * (width - entries);
    const double y = (legend_line * (static_cast<double>(lines.size() - line) - 0.5) + 0.02) / height;
    for (const std::size_t run : lines[line]) {
      const RunStyle& style = run_style(run);
      const double middle = (x + 0.5 * legend_sample) / width;
      script.line(
          "set arrow {} from screen {:.5f}, screen {:.5f} to screen {:.5f}, screen {:.5f} nohead linewidth 1.3 dashtype {} linecolor rgb "
          "'{}'",
          101 + run, x / width, y, (x + legend_sample) / width, y, style.dash, style.colour);
      script.line("set label \"\" at screen {:.5f}, screen {:.5f} point pointtype {} pointsize 0.5 linecolor rgb '{}'", middle, y,
                  style.marker, style.colour);
      script.line("set label \"{}\" at screen {:.5f}, screen {:.5f} left", plain(runs[run].label), (x + legend_sample + 0.06) / width, y);
      x += entry_width(runs[run]) + legend_gap;
    }
  }
}

double aside(double x, std::size_t run, std::size_t runs) {
  return x * std::pow(1.03, static_cast<double>(run) - 0.5 * static_cast<double>(runs - 1));
}

std::vector<std::int64_t> all_tokens(std::span<const Results> runs) {
  std::set<std::int64_t> tokens;
  for (const Results& run : runs) {
    for (const analyses::ContextPoint& point : run.context.points) tokens.insert(point.length.tokens);
  }
  return {tokens.begin(), tokens.end()};
}

}  // namespace gainlens::reports
