#include "reports/sweep/context_figure.h"

#include "analyses/context.h"
#include "reports/figures/figure_parts.h"
#include "reports/sweep/run_words.h"
#include "reports/sweep/sections.h"

#include <algorithm>
#include <cmath>

namespace gainlens::reports {
namespace {

using analyses::Aggregate, analyses::Change, analyses::Context, analyses::ContextPoint;

/// length, mean, mean -+ deviation, ends of the interval
std::vector<double> row(double tokens, double mean, const Measured& deviation, const Maybe<Interval>& interval) {
  const double reach = value_or_nan(deviation);
  return {tokens,
          mean,
          mean - reach,
          mean + reach,
          interval ? interval->low : no_value,
          interval ? interval->high : no_value};
}

/// What one line of the figure is about.
struct Subject {
  std::string name;
  const Context* context;
};

/// What the figure draws. One run with several kinds of attention: each kind, because a mean over them is true of
/// neither. Several runs: each run, by the kind with the longest window where it has several.
std::vector<Subject> subjects(Runs runs) {
  std::vector<Subject> found;
  for (const SweepRun& run : runs) {
    const auto& kinds = run.of(analyses::context_by_attention);
    if (kinds.empty()) {
      found.push_back({run.label(), &run.of(analyses::context)});
    } else if (runs.size() > 1 || kinds.size() > max_runs) {
      found.push_back({run.label(), &analyses::widest(kinds).context});
    } else {
      for (const analyses::KindContext& kind : kinds) found.push_back({kind.attention, &kind.context});
    }
  }
  return found;
}

/// Which of several subjects a series belongs to.
struct Place {
  std::size_t run;
  std::size_t runs;
  double at(const ContextPoint& point) const { return aside(static_cast<double>(point.length.tokens), run, runs); }
};

Rows rows_of(const Context& context, const Maybe<Aggregate> ContextPoint::*member, const Place& place) {
  Rows rows;
  for (const ContextPoint& point : context.points) {
    const Maybe<Aggregate>& aggregate = point.*member;
    if (aggregate) rows.push_back(row(place.at(point), aggregate->mean, aggregate->deviation, aggregate->interval));
  }
  return rows;
}

Rows ratio_rows(const Context& context, const Place& place) {
  Rows rows;
  for (const ContextPoint& point : context.points) {
    if (!point.precision_ratio) continue;
    // At the shortest length it is 1 by definition: an interval there says nothing and is not drawn.
    const bool shortest = &point == &context.points.front();
    rows.push_back(row(place.at(point), *point.precision_ratio, point.precision_ratio_deviation,
                       shortest ? Maybe<Interval>::none("1 by definition") : point.precision_ratio_interval));
  }
  return rows;
}

Rows change_rows(const Context& context, const Change ContextPoint::*member, const Place& place) {
  Rows rows;
  for (const ContextPoint& point : context.points) {
    const Change& change = point.*member;
    if (!change.mean) continue;
    const Maybe<Interval> none = Maybe<Interval>::none("0 by definition");
    const bool shortest = &point == &context.points.front();
    rows.push_back(row(place.at(point), *change.mean, Measured::none("not shown"), shortest ? none : change.interval));
  }
  return rows;
}

/// One panel's numbers of every run; empty rows where a run has none.
using Series = std::vector<Rows>;

template <typename Read>
Series series_of(const std::vector<Subject>& about, Read read) {
  Series series;
  for (std::size_t i = 0; i < about.size(); ++i) series.push_back(read(*about[i].context, Place{i, about.size()}));
  return series;
}

bool empty(const Series& series) {
  return std::all_of(series.begin(), series.end(), [](const Rows& rows) { return rows.empty(); });
}

/// The band of one standard deviation, drawn where there is one run: of several they would cover each other.
std::string band(const std::string& block, const Rows& rows, std::string_view line_colour) {
  if (!any_finite(rows, 2)) return {};
  if (rows.size() > 1) {
    return fmt::format(
        "${} using 1:3:4 with filledcurves linecolor rgb '{}' fillstyle transparent solid 0.18 notitle, ", block,
        line_colour);
  }
  return fmt::format("${} using 1:3:(0):($4-$3) with vectors nohead linewidth 5 linecolor rgb '#AA{}' notitle, ", block,
                     line_colour.substr(1));
}

std::string mean_and_interval(const std::string& block, const Rows& rows, std::string_view line_colour, int marker,
                              int dash, std::string_view title) {
  std::string plot;
  if (any_finite(rows, 4))
    plot = fmt::format("${} using 1:5:(0):($6-$5) with vectors nohead linewidth 1.2 linecolor rgb '{}' notitle, ",
                       block, colour::ink);
  return plot + fmt::format(
                    "${} using 1:2 with linespoints pointtype {} pointsize 0.5 linewidth 1.3 dashtype {} linecolor rgb "
                    "'{}' {}",
                    block, marker, dash, line_colour, title.empty() ? "notitle" : fmt::format("title '{}'", title));
}

/// Upper end of an axis from 0 that holds band, interval and mean: gnuplot's own does not see a band's far side.
double axis_top(const Series& series) {
  Extent reach{0, 0};
  for (const Rows& rows : series) {
    reach.add(rows, {1, 5});
    if (series.size() == 1) reach.add(rows, {3});
  }
  return reach.high > 0 ? 1.08 * reach.high : 1;
}

void value_panel(PlotScript& script, const std::string& name, const Series& series, std::string_view single_colour) {
  std::string plot;
  for (std::size_t run = 0; run < series.size(); ++run) {
    if (series[run].empty()) continue;
    const std::string block = fmt::format("{}_{}", name, run);
    script.data(block, series[run]);
    const std::string_view line_colour = series.size() == 1 ? single_colour : run_style(run).colour;
    if (series.size() == 1) plot += band(block, series[run], line_colour);
    plot += mean_and_interval(block, series[run], line_colour, run_style(run).marker, run_style(run).dash, "") + ", ";
  }
  plot.resize(plot.size() - 2);
  script.y_axis(0, axis_top(series), 0).line("plot {}", plot);
}

/// Changes of ln lambda_obs (filled markers) and logit gate (hollow, dotted).
void change_panel(PlotScript& script, const Series& log, const Series& logit) {
  std::string plot = fmt::format("0 with lines linewidth 0.7 linecolor rgb '{}' notitle", colour::grey);
  const bool one = log.size() == 1;
  Extent reach{0, 0};
  for (std::size_t run = 0; run < log.size(); ++run) {
    const RunStyle& style = run_style(run);
    const auto add = [&](const char* name, const Rows& rows, std::string_view line_colour, int marker, int dash,
                         std::string_view title) {
      if (rows.empty()) return;
      const std::string block = fmt::format("{}_{}", name, run);
      script.data(block, rows);
      reach.add(rows, {1, 4, 5});
      plot += ", " + mean_and_interval(block, rows, line_colour, marker, dash, title);
    };
    add("log", log[run], one ? colour::green : style.colour, style.marker, one ? 1 : style.dash,
        one ? "ln λ_{obs}" : "");
    add("logit", logit[run], one ? colour::vermillion : style.colour, one ? 4 : style.hollow_marker, 3,
        one ? "logit(gate)" : "");
  }
  if (one) script.line("set key top left Left reverse at graph 0, graph 1");
  script.y_axis(reach.low, reach.high, one ? 0.4 : 0.06);  // room for the key
  script.line("plot {}", plot);
}

/// The numbers of every panel.
struct Panels {
  Series n_eff, gate, ratio, logit, log;
};

Panels panels_of(const std::vector<Subject>& runs) {
  return {
      series_of(runs, [](const Context& c, const Place& p) { return rows_of(c, &ContextPoint::n_eff, p); }),
      series_of(runs, [](const Context& c, const Place& p) { return rows_of(c, &ContextPoint::gate, p); }),
      series_of(runs, [](const Context& c, const Place& p) { return ratio_rows(c, p); }),
      series_of(runs, [](const Context& c, const Place& p) { return change_rows(c, &ContextPoint::logit_gate, p); }),
      series_of(runs,
                [](const Context& c, const Place& p) { return change_rows(c, &ContextPoint::log_precision, p); })};
}

bool holds(const Series& series, std::size_t column) {
  return std::any_of(series.begin(), series.end(), [&](const Rows& rows) { return any_finite(rows, column); });
}

std::string first_reason(Runs runs) {
  const ContextPoint& point = runs.front().of(analyses::context).points.front();
  return point.n_eff ? point.precision_ratio.reason() : point.n_eff.reason();
}

}  // namespace

ContextMarks context_marks(Runs runs) {
  const std::vector<Subject> about = subjects(runs);
  const Panels panels = panels_of(about);
  constexpr std::size_t deviation = 2, interval = 4;  // columns of row()
  const bool one = about.size() == 1, gated = !empty(panels.gate);
  const auto any = [&](std::size_t column) {
    return holds(panels.n_eff, column) || holds(panels.gate, column) || holds(panels.ratio, column);
  };
  const bool changes = gated || !one;
  return {.bands = one && any(deviation),
          .intervals = any(interval) || (changes && (holds(panels.logit, interval) || holds(panels.log, interval))),
          .changes = changes,
          .gate = gated,
          .lines = about.size()};
}

Maybe<Figure> context_figure(Runs runs) {
  const std::vector<Subject> about = subjects(runs);
  const auto [n_eff, gate, ratio, logit, log] = panels_of(about);
  if (empty(n_eff) || empty(ratio)) return Maybe<Figure>::none(first_reason(runs));
  const bool gated = !empty(gate), several = about.size() > 1, changes = context_marks(runs).changes;

  std::vector<std::string> names;
  for (const Subject& subject : about) {
    if (several) names.push_back(subject.name);
  }
  std::vector<LegendEntry> legend = name_runs(names);
  if (several && gated) {
    legend.push_back({"ln λ_{obs}", colour::ink, run_style(0).marker, 0});
    legend.push_back({"logit gate", colour::ink, run_style(0).hollow_marker, 0});
  }
  PanelGrid grid{changes ? page_width : column_width, 1.95};
  grid.columns = gated ? 4 : several ? 3 : 2;
  PanelFigure script(grid, legend);
  script.length_axis(drawn_lengths(runs), grid.panel_width());
  std::size_t panel = 0;
  script.line("set ylabel offset 1.6,0");
  script.panel(panel++, "{/:Italic n}_{eff} (keys)");
  value_panel(script, "n_eff", n_eff, colour::blue);
  if (gated) {
    script.panel(panel++, "trained gate σ");
    value_panel(script, "gate", gate, colour::vermillion);
  }
  script.panel(panel++, "λ_{obs}({/:Italic T}) / λ_{obs}({/:Italic T}_{min})");
  value_panel(script, "ratio", ratio, colour::green);
  if (changes) {
    script.panel(panel++, "Δ since {/:Italic T}_{min} (nats)");
    change_panel(script, log, logit);
  }
  return script.figure("context");
}

}  // namespace gainlens::reports
