#include "reports/figures/figure_parts.h"

#include "reports/figures/palette.h"

#include <algorithm>
#include <cmath>

namespace gainlens::reports {
namespace {

// inches
constexpr double legend_line = 0.17, legend_sample = 0.3, legend_gap = 0.22;

/// Characters that are seen: not the bytes of UTF-8, nor markup such as {/:Italic K}_{min}.
double entry_width(const LegendEntry& entry) {
  double characters = 0;
  bool markup = false;
  for (const char c : entry.name) {
    if (c == '/') markup = true;
    const bool continued = (static_cast<unsigned char>(c) & 0xC0) == 0x80;
    if (!markup && !continued && std::string_view("{}_^\\").find(c) == std::string_view::npos) ++characters;
    if (c == ' ') markup = false;
  }
  return legend_sample + 0.06 + character_width * characters;
}

using LegendLine = std::vector<const LegendEntry*>;

/// Lines of a legend, each with as many entries as fit the width.
std::vector<LegendLine> legend_lines(const std::vector<LegendEntry>& entries, double width) {
  std::vector<LegendLine> lines;
  double used = 0;
  for (const LegendEntry& entry : entries) {
    if (lines.empty() || used + entry_width(entry) > width) {
      lines.emplace_back();
      used = 0;
    }
    lines.back().push_back(&entry);
    used += entry_width(entry) + legend_gap;
  }
  return lines;
}

}  // namespace

double value_or_nan(const Measured& value) {
  return value ? *value : no_value;
}

double mean_or_nan(const Maybe<analyses::Aggregate>& value) {
  return value ? value->mean : no_value;
}

bool any_finite(const Rows& rows, std::size_t column) {
  for (const auto& values : rows) {
    if (std::isfinite(values[column])) return true;
  }
  return false;
}

void Extent::add(double value) {
  if (!std::isfinite(value)) return;
  low = std::min(low, value);
  high = std::max(high, value);
}
void Extent::add(const Rows& rows, std::initializer_list<std::size_t> columns) {
  for (const std::vector<double>& row : rows)
    for (const std::size_t column : columns) add(row[column]);
}

std::vector<double> barred_point(double x, double y, const Maybe<Interval>& bar) {
  return {x, y, bar ? bar->low : no_value, bar ? bar->high : no_value};
}

std::string barred_curve(std::string_view block, const Rows& rows, const RunStyle& style, const BarredCurve& sizes) {
  std::string plot;
  if (any_finite(rows, 2))
    plot += fmt::format("${} using 1:3:(0):($4-$3) with vectors nohead linewidth {:.1f} linecolor rgb '{}' notitle, ",
                        block, sizes.bar_width, style.colour);
  plot += fmt::format(
      "${} using 1:2 with linespoints pointtype {} pointsize {:.1f} linewidth {:.1f} dashtype {} linecolor rgb '{}' "
      "notitle, ",
      block, style.marker, sizes.point_size, sizes.line_width, style.dash, style.colour);
  return plot;
}

LegendEntry name_run(const std::string& label, std::size_t style, LegendMark mark) {
  const RunStyle& drawn = run_style(style);
  return {plain(label), drawn.colour, drawn.marker, mark == LegendMark::marker ? 0 : drawn.dash};
}

std::vector<LegendEntry> name_runs(std::span<const std::string> labels, LegendMark mark) {
  std::vector<LegendEntry> entries;
  for (std::size_t run = 0; run < labels.size(); ++run) entries.push_back(name_run(labels[run], run, mark));
  return entries;
}

PanelFigure::PanelFigure(const PanelGrid& grid, const std::vector<LegendEntry>& legend) : grid_(grid), legend_(legend) {
  const double strip =
      legend.empty() ? 0 : legend_line * static_cast<double>(legend_lines(legend, grid.width).size()) + 0.04;
  grid_.height += strip;
  grid_.bottom += strip;
  line("set multiplot layout {},{} margins {:.5f},{:.5f},{:.5f},{:.5f} spacing {:.5f},{:.5f}", grid.rows, grid.columns,
       grid.left / grid.width, 1 - grid.right / grid.width, grid_.bottom / grid_.height, 1 - grid.top / grid_.height,
       grid.across / grid.width, grid.down / grid_.height);
}

PlotScript& PanelFigure::panel(std::size_t index, std::string_view title) {
  PlotScript::panel(index, title);
  if (index == 0) draw_legend();
  return *this;
}

void PanelFigure::draw_legend() {
  const std::vector<LegendLine> lines = legend_lines(legend_, grid_.width);
  int arrow = 100;  // numbers that no panel uses
  for (std::size_t row = 0; row < lines.size(); ++row) {
    double x = grid_.width + legend_gap;
    for (const LegendEntry* entry : lines[row]) x -= entry_width(*entry) + legend_gap;
    x = std::max(0.5 * x, 0.0);
    const double y = (legend_line * (static_cast<double>(lines.size() - row) - 0.5) + 0.02) / grid_.height;
    for (const LegendEntry* entry : lines[row]) {
      if (entry->dash > 0) {
        ++arrow;
        // Neighbours differ in width by nothing that is seen: gnuplot forgets the dash of an arrow that has the colour
        // and the width of the one before it.
        line(
            "set arrow {} from screen {:.5f}, screen {:.5f} to screen {:.5f}, screen {:.5f} nohead linewidth {} "
            "dashtype {} linecolor rgb '{}'",
            arrow, x / grid_.width, y, (x + legend_sample) / grid_.width, y, arrow % 2 == 0 ? 1.3 : 1.31, entry->dash,
            entry->colour);
      }
      if (entry->marker > 0) {
        line("set label \"\" at screen {:.5f}, screen {:.5f} point pointtype {} pointsize 0.5 linecolor rgb '{}'",
             (x + 0.5 * legend_sample) / grid_.width, y, entry->marker, entry->colour);
      }
      line("set label \"{}\" at screen {:.5f}, screen {:.5f} left", entry->name,
           (x + legend_sample + 0.06) / grid_.width, y);
      x += entry_width(*entry) + legend_gap;
    }
  }
}

Figure PanelFigure::figure(const std::string& name) {
  line("unset multiplot");
  return {name, grid_.width, grid_.height, text()};
}

Maybe<Figure> too_many(std::size_t count, std::string_view what) {
  return Maybe<Figure>::none(fmt::format("{} {}; {} can be told apart in one figure", count, what, max_runs));
}

double aside(double x, std::size_t run, std::size_t runs) {
  return x * std::pow(1.03, static_cast<double>(run) - 0.5 * static_cast<double>(runs - 1));
}

}  // namespace gainlens::reports
