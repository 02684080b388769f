#include "reports/figures.h"
#include "reports/plot_script.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gainlens::reports {
namespace {

using analyses::Aggregate;
using analyses::Change;
using analyses::Context;
using analyses::ContextPoint;
using analyses::Interval;
using analyses::Maybe;
using analyses::Measured;

constexpr double no_value = std::numeric_limits<double>::quiet_NaN();

double value_or_nan(const Measured& value) {
  return value ? *value : no_value;
}

/// length, mean, mean -+ deviation, ends of the interval
std::vector<double> row(std::int64_t tokens, double mean, const Measured& deviation, const Maybe<Interval>& interval) {
  const double reach = value_or_nan(deviation);
  return {static_cast<double>(tokens),         mean, mean - reach, mean + reach, interval ? interval->low : no_value,
          interval ? interval->high : no_value};
}

using Rows = std::vector<std::vector<double>>;

Rows rows_of(const Context& context, const Maybe<Aggregate> ContextPoint::*member) {
  Rows rows;
  for (const ContextPoint& point : context.points) {
    const Maybe<Aggregate>& aggregate = point.*member;
    if (aggregate) rows.push_back(row(point.length.tokens, aggregate->mean, aggregate->deviation, aggregate->interval));
  }
  return rows;
}

Rows ratio_rows(const Context& context) {
  Rows rows;
  for (const ContextPoint& point : context.points) {
    if (!point.precision_ratio) continue;
    rows.push_back(row(point.length.tokens, *point.precision_ratio, point.precision_ratio_deviation, point.precision_ratio_interval));
  }
  return rows;
}

Rows change_rows(const Context& context, const Change ContextPoint::*member) {
  Rows rows;
  for (const ContextPoint& point : context.points) {
    const Change& change = point.*member;
    if (change.mean) rows.push_back(row(point.length.tokens, *change.mean, Measured::none("not shown"), change.interval));
  }
  return rows;
}

bool any_finite(const Rows& rows, std::size_t column) {
  for (const auto& values : rows) {
    if (std::isfinite(values[column])) return true;
  }
  return false;
}

/// Mean with its interval, over the band of one standard deviation.
std::string band_and_mean(const std::string& block, const Rows& rows, std::string_view line_colour) {
  std::string plot;
  if (any_finite(rows, 2)) {
    plot += rows.size() > 1 ? fmt::format(
                                  "${0} using 1:3:4 with filledcurves linecolor rgb '{1}' fillstyle transparent solid 0.16 "
                                  "title '± 1 SD (chunk, layer, head, query)', ",
                                  block, line_colour)
                            : fmt::format(
                                  "${0} using 1:2:3:4 with yerrorbars pointtype 0 linewidth 5 linecolor rgb '#55{1}' "
                                  "title '± 1 SD (chunk, layer, head, query)', ",
                                  block, line_colour.substr(1));
  }
  if (any_finite(rows, 4)) {
    plot += fmt::format(
        "${0} using 1:2:5:6 with yerrorbars pointtype 0 linewidth 1.2 linecolor rgb '#222222' "
        "title '95% interval of the mean (chunks)', ",
        block);
  }
  return plot + fmt::format("${} using 1:2 with linespoints pointtype 7 pointsize 0.6 linewidth 1.8 linecolor rgb '{}' title 'mean'", block,
                            line_colour);
}

std::string change_series(const std::string& block, const Rows& rows, std::string_view line_colour, int point_type, int dash,
                          std::string_view title) {
  std::string plot;
  if (any_finite(rows, 4)) {
    plot = fmt::format("${} using 1:2:5:6 with yerrorbars pointtype 0 linewidth 1.2 linecolor rgb '{}' notitle, ", block, line_colour);
  }
  return plot +
         fmt::format("${} using 1:2 with linespoints pointtype {} pointsize 0.7 linewidth 1.8 dashtype {} linecolor rgb '{}' title '{}'",
                     block, point_type, dash, line_colour, title);
}

/// Upper end of an axis from 0 that holds band, interval and mean, with room for the key above: gnuplot's own does not see a band's far
/// side.
double axis_top(const Rows& rows) {
  double top = 0;
  for (const auto& values : rows) {
    for (const std::size_t column : {std::size_t{1}, std::size_t{3}, std::size_t{5}}) {
      if (std::isfinite(values[column])) top = std::max(top, values[column]);
    }
  }
  return top > 0 ? 1.25 * top : 1;
}

void band_panel(PlotScript& script, std::size_t index, const std::string& block, const Rows& rows, std::string_view line_colour,
                std::string_view title, std::string_view unit) {
  script.panel(index, title);
  script.line("set ylabel '{}'", unit);
  script.line("set yrange [0:{:.6g}]", axis_top(rows));
  script.line("plot {}", band_and_mean(block, rows, line_colour));
}

}  // namespace

Maybe<Figure> context_figure(const Context& context) {
  const Rows n_eff = rows_of(context, &ContextPoint::n_eff), gate = rows_of(context, &ContextPoint::gate), ratio = ratio_rows(context);
  if (n_eff.empty()) return Maybe<Figure>::none(context.points.front().n_eff.reason());
  if (ratio.empty()) return Maybe<Figure>::none(context.points.front().precision_ratio.reason());
  std::vector<std::int64_t> lengths;
  for (const ContextPoint& point : context.points) lengths.push_back(point.length.tokens);
  const Rows logit = change_rows(context, &ContextPoint::logit_gate), log = change_rows(context, &ContextPoint::log_precision);
  const bool gated = !gate.empty();

  PlotScript script;
  script.data("n_eff", n_eff).data("gate", gate).data("ratio", ratio).data("logit", logit).data("log", log);
  script.line("set multiplot layout {},2 margins {},0.985,{},{} spacing 0.1,{}", gated ? 2 : 1, 0.075, gated ? 0.085 : 0.16,
              gated ? 0.94 : 0.88, 0.17);
  script.line("set key top left Left reverse font ',9'").line("set offsets 0, 0, graph 0.2, 0").length_axis(lengths);
  std::size_t panel = 0;
  band_panel(script, panel++, "n_eff", n_eff, colour::blue, "effective sample size", "{/:Italic n}_{eff} (keys)");
  if (gated) {
    script.line("set key bottom left");
    band_panel(script, panel++, "gate", gate, colour::vermillion, "trained gate σ(score)", "gate (1)");
    script.line("set key top left");
  }
  band_panel(script, panel++, "ratio", ratio, colour::green, "observation precision, relative to the shortest context",
             "λ_{obs}({/:Italic T}) / λ_{obs}({/:Italic T}_{min})  (1)");
  if (gated) {
    script.panel(panel++, "like for like: change since the shortest context");
    script.line("set ylabel 'change (nats)'").line("set yrange [*:*]").line("set offsets 0, 0, graph 0.12, graph 0.06");
    script.line("plot 0 with lines linewidth 0.8 linecolor rgb '#999999' notitle, {}, {}",
                change_series("log", log, colour::green, 7, 1, "ln λ_{obs}"),
                change_series("logit", logit, colour::vermillion, 5, 2, "logit(gate)"));
  }
  script.line("unset multiplot");
  return Figure{"context", 860, gated ? 620 : 340, script.text()};
}

}  // namespace gainlens::reports
