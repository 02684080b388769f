#include "reports/figures.h"
#include "reports/plot_script.h"

#include <limits>

namespace gainlens::reports {

using analyses::GainTheory;
using analyses::GainTheoryPoint;
using analyses::Maybe;

Maybe<Figure> gain_theory_figure(const GainTheory& theory) {
  if (!theory.max_relative_error) return Maybe<Figure>::none(theory.max_relative_error.reason());
  constexpr double no_value = std::numeric_limits<double>::quiet_NaN();
  const auto or_nan = [](const analyses::Measured& value) { return value ? *value : no_value; };
  const auto mean_or_nan = [](const Maybe<analyses::Aggregate>& value) { return value ? value->mean : no_value; };
  const double constant = mean_or_nan(theory.points.front().kalman_gain);

  std::vector<std::int64_t> lengths;
  std::vector<std::vector<double>> gains, errors;
  bool intervals = false, scaled = false;
  for (const GainTheoryPoint& point : theory.points) {
    const auto tokens = static_cast<double>(point.length.tokens);
    const bool has_interval = point.kalman_gain && point.kalman_gain->interval;
    intervals = intervals || has_interval;
    scaled = scaled || point.kalman_gain_scaled;
    lengths.push_back(point.length.tokens);
    gains.push_back({tokens, mean_or_nan(point.kalman_gain), has_interval ? point.kalman_gain->interval->low : no_value,
                     has_interval ? point.kalman_gain->interval->high : no_value, or_nan(point.predicted_gain), constant,
                     mean_or_nan(point.kalman_gain_scaled)});
    if (point.relative_error) errors.push_back({tokens, 100 * *point.relative_error, 100 * *point.constant_error});
  }

  PlotScript script;
  script.data("gains", gains).data("errors", errors);
  script.line("set multiplot layout 1,2 margins 0.08,0.985,0.16,0.885 spacing 0.1,0.1");
  script.length_axis(lengths).line("set offsets 0, 0, graph 0.45, graph 0.05").line("set key top left Left reverse font ',9'");
  script.panel(0, "Kalman gain, deep layers, last-quarter queries").line("set ylabel '{{/:Italic K}} (1)'");
  std::string plot = fmt::format(
      "$gains using 1:6 with lines linewidth 1.4 dashtype 3 linecolor rgb '{}' title 'constant {{/:Italic K}}({{/:Italic T}}_{{min}})'",
      colour::grey);
  if (intervals) {
    plot +=
        ", $gains using 1:2:3:4 with yerrorbars pointtype 0 linewidth 1.2 linecolor rgb '#222222' title '95% interval of "
        "the mean (chunks)'";
  }
  plot += fmt::format(", $gains using 1:2 with points pointtype 7 pointsize 0.9 linecolor rgb '{}' title 'measured'", colour::blue);
  plot += fmt::format(
      ", $gains using 1:5 with lines linewidth 1.8 linecolor rgb '{}' title 'theory λ*/(λ + λ*), one λ fitted at {{/:Italic T}}_{{min}}'",
      colour::vermillion);
  if (scaled) {
    plot += fmt::format(
        ", $gains using 1:7 with linespoints pointtype 4 pointsize 0.8 linewidth 1.2 dashtype 2 linecolor rgb '{}' title 'measured, scaled "
        "values'",
        colour::green);
  }
  script.line("plot {}", plot);

  script.panel(1, "error relative to the measured {/:Italic K}")
      .line("set ylabel 'relative error (%)'")
      .line("set yrange [0:*]")
      .line("set offsets 0, 0, graph 0.22, 0");
  script.line(
      "plot $errors using 1:3 with linespoints pointtype 5 pointsize 0.8 linewidth 1.4 dashtype 3 linecolor rgb '{}' title 'constant', "
      "$errors using 1:2 with linespoints pointtype 7 pointsize 0.8 linewidth 1.8 linecolor rgb '{}' title 'theory'",
      colour::grey, colour::vermillion);
  script.line("unset multiplot");
  return Figure{"gain-theory", 860, 350, script.text()};
}

}  // namespace gainlens::reports
