#include "reports/sweep/depth_figure.h"

#include "reports/figures/figure_parts.h"

#include <algorithm>
#include <limits>

namespace gainlens::reports {
namespace {

using analyses::DepthAtLength;
using analyses::DepthMedians;
using analyses::DepthRow;
using runfile::DepthReading;

/// The places of a reading in a row: layer, then the starts of filter, then those of gain-one.
std::size_t column_of(DepthReading reading, std::size_t start) {
  return 2 + static_cast<std::size_t>(reading) * runfile::depth_starts.size() + start;
}

std::vector<double> depth_row(double layer, const DepthMedians& medians, bool inverse) {
  std::vector<double> row = {layer};
  for (const auto& by_start : medians) {
    for (const double value : by_start)
      row.push_back(!inverse ? value : value > 0 ? 1 / value : std::numeric_limits<double>::quiet_NaN());
  }
  return row;
}

/// Both readings: the embedding's own variance in full, a tenth and ten times of it thin.
std::string both_readings(const std::string& block) {
  std::string plot;
  for (const DepthReading reading : {DepthReading::filter, DepthReading::gain_one}) {
    const bool filter = reading == DepthReading::filter;
    for (std::size_t start = 0; start < runfile::depth_starts.size(); ++start) {
      plot += plot.empty() ? "" : ", ";
      plot += fmt::format("${} using 1:{} with ", block, column_of(reading, start));
      plot += start == runfile::depth_start
                  ? fmt::format("linespoints pointtype {} pointsize 0.5 linewidth 1.3 dashtype {}", filter ? 7 : 9,
                                filter ? 1 : 2)
                  : std::string("lines linewidth 0.6 dashtype 3");
      plot += fmt::format(" linecolor rgb '{}' notitle", filter ? colour::vermillion : colour::blue);
    }
  }
  return plot;
}

}  // namespace

Figure depth_figure(const DepthAtLength& length) {
  Rows gains, precisions, errors;
  for (const DepthRow& row : length.layers) {
    const auto layer = static_cast<double>(row.layer);
    gains.push_back(depth_row(layer, row.gain, false));
    precisions.push_back(depth_row(layer, row.variance, true));
    if (!row.truth) continue;
    const runfile::DepthQuantiles& error = row.truth->rule_error;
    errors.push_back({layer, 100 * error[runfile::depth_median], 100 * error.front(), 100 * error.back()});
  }
  const auto layers = static_cast<double>(length.layers.size());
  precisions.push_back(depth_row(layers, length.last, true));
  std::vector<LegendEntry> legend = {{"filter", colour::vermillion, 7, 1},
                                     {"gain-one", colour::blue, 9, 2},
                                     {"first P times 0.1 and 10", colour::grey, 0, 3}};
  PanelGrid grid{page_width, 2.1};
  grid.columns = errors.empty() ? 2 : 3;
  PanelFigure script(grid, legend);
  script.data("gains", gains).data("precisions", precisions).data("errors", errors);
  script.line("unset key").line("set xlabel 'layer' offset 0,0.5").line("set xrange [-0.5:{}]", layers + 0.5);
  script.line("set xtics {} nomirror", layers > 16 ? 6 : layers > 8 ? 2 : 1).line("set yrange [0:1.05]");
  script.panel(0, "{/:Italic K} = {/:Italic P} / ({/:Italic P} + {/:Italic O})");
  script.line("plot {}", both_readings("gains"));
  script.line("set logscale y").line("set yrange [*:*]").line("set format y '10^{{%T}}'");
  script.panel(1, "precision λ of the stream").line("plot {}", both_readings("precisions"));
  script.line("unset logscale y").line("set format y '%g'");
  if (!errors.empty()) {
    script.panel(2, "diagonal rule: error in %");
    script.line(
        "plot 0 with lines linewidth 0.7 linecolor rgb '{0}' notitle, $errors using 1:3:(0):($4-$3) with vectors "
        "nohead "
        "linewidth 1.2 linecolor rgb '{1}' notitle, $errors using 1:2 with points pointtype 7 pointsize 0.5 linecolor "
        "rgb '{1}' notitle",
        colour::grey, colour::green);
  }
  return script.figure("depth");
}

}  // namespace gainlens::reports
