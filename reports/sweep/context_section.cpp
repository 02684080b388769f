#include "analyses/context.h"
#include "core/quantity.h"
#include "reports/figures/figure_parts.h"
#include "reports/sweep/run_words.h"
#include "reports/sweep/sections.h"
#include "reports/words/numbers.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <utility>

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

/// What the context figure draws, for its caption to explain.
struct ContextMarks {
  bool bands;      ///< of one standard deviation; drawn for one run, since those of several would cover each other
  bool intervals;  ///< of the mean over chunks; one chunk has none
  bool changes;    ///< the panel of ln lambda_obs and, where a run has a gate, of logit(gate)
  bool gate;
  std::size_t lines;  ///< of each panel: one a run, or of one run one a kind of attention
};
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

/// context: n_eff, gate (where there is one), lambda_obs relative to T_min, and the changes of gate and precision on
/// one scale, against context length. Several runs are overlaid, one colour, marker and dash for each (palette.h), and
/// likewise the kinds of attention of one run; a line that lacks a quantity is left out of its panel. Missing, with the
/// reason, where no run has anything to show.
/// @param runs  at least one, at most max_runs; so for every figure of a sweep
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

using Mean = Maybe<analyses::Aggregate>;

CsvTable csv_of(std::string stem, const analyses::Context& context) {
  CsvTable table{std::move(stem), {"tokens", "chunks"}, {}};
  for (const char* name : {"n_eff", "gate", "observation_precision"}) {
    for (const char* part : aggregate_columns) table.header.push_back(fmt::format("{}{}", name, part));
  }
  for (const char* part : interval_columns) table.header.push_back(fmt::format("observation_precision_ratio{}", part));
  for (const char* name :
       {"logit_gate_change", "log_observation_precision_change", "logit_gate_less_log_precision_change"}) {
    for (const char* part : interval_columns) table.header.push_back(fmt::format("{}{}", name, part));
  }
  table.header.emplace_back("set_apart");
  for (const analyses::ContextPoint& point : context.points) {
    std::vector<Cell> row = {point.length.tokens, cell(point.length.samples.size())};
    append(row, point.n_eff);
    append(row, point.gate);
    append(row, point.observation_precision);
    row.push_back(cell(point.precision_ratio));
    append(row, point.precision_ratio_interval);
    append(row, point.logit_gate);
    append(row, point.log_precision);
    append(row, point.difference);
    row.emplace_back(point.set_apart);
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// Whether the gate is flat, in one word; a dash at the shortest length, where the change is 0 by construction.
std::string flatness(const analyses::Change& change, bool shortest) {
  if (shortest || !change.mean) return "–";
  switch (change.flat.flatness) {
    case analyses::Flatness::equivalent:
      return "yes";
    case analyses::Flatness::changes:
      return "no";
    case analyses::Flatness::not_shown:
      return "not shown";
    case analyses::Flatness::unknown:
      break;
  }
  return "not known";
}

/// The ratio of means with its own interval, which at the shortest length has no width.
std::string shown_ratio(const analyses::ContextPoint& point, bool shortest) {
  return shortest ? shown(point.precision_ratio)
                  : with_interval(shown(point.precision_ratio), point.precision_ratio_interval);
}

/// "1k", or "256*" where growth is not judged.
std::string marked_length(const analyses::ContextPoint& point) {
  return format_count(point.length.tokens) + (point.set_apart.empty() ? "" : "*");
}

/// What the stars of a table mean: a sentence for each run that has some; empty where none has.
std::string stars(Runs runs, const std::function<std::string(const SweepRun&)>& apart) {
  const std::string said = runs_said(runs, apart);
  return said.empty() ? ""
                      : fmt::format(
                            " * Growth is not judged at this length: {}. A change since such a length contains what "
                            "sets it apart.",
                            said);
}

PaperTable context_table(Runs runs) {
  const auto has_gate = [](const SweepRun& run) { return bool(run.of(analyses::context).points.front().gate); };
  const bool gated = std::any_of(runs.begin(), runs.end(), has_gate);
  const analyses::Context& context = runs.front().of(analyses::context);
  PaperTable table{"context",
                   fmt::format("Evidence by context length: means over the deep layers' last-quarter queries ({}), "
                               "with 95% intervals of the mean over chunks; the ratio is of means, Δ the mean change "
                               "of the chunks' logarithms since T_min, each with its own interval.",
                               each_run_said(runs,
                                             [](const SweepRun& run) {
                                               return layers_in_words(run.of(analyses::context).deep_layers);
                                             })),
                   {{"T (tokens)"}, {"n_eff (keys)"}, {"lambda_obs / lambda_obs(T_min)"}, {"Δ ln lambda_obs (nats)"}},
                   {}};
  if (gated) {
    table.caption += fmt::format(
        " Flat: whether logit(gate) is equivalent to flat within ±{:g} (TOST, level 0.05); {}. Difference: Δ "
        "logit(gate) less Δ ln lambda_obs.",
        context.equivalence_margin, context.margin_meaning);
    for (const char* heading : {"gate", "Δ logit(gate) (nats)", "flat", "difference (nats)"})
      table.columns.push_back({heading});
  }
  table.caption +=
      stars(runs, [](const SweepRun& run) { return analyses::set_apart_in_words(run.of(analyses::context)); });
  add_runs(table, runs, [&](const SweepRun& run) {
    for (std::size_t i = 0; i < run.of(analyses::context).points.size(); ++i) {
      const analyses::ContextPoint& point = run.of(analyses::context).points[i];
      std::vector<std::string> row = {marked_length(point), shown(point.n_eff), shown_ratio(point, i == 0),
                                      i == 0 ? "–" : shown(point.log_precision)};
      if (gated) {
        row.push_back(shown(point.gate));
        row.push_back(i == 0 ? "–" : shown(point.logit_gate));
        row.push_back(flatness(point.logit_gate, i == 0));
        row.push_back(i == 0 ? "–" : shown(point.difference));
      }
      table.rows.push_back(std::move(row));
    }
  });
  return table;
}

/// K of all layers of one kind of attention at one context length.
struct KindGain {
  Mean gain;
  Mean scaled;
};
/// [kind of analyses::context_by_attention][context length]
using KindGains = std::vector<std::vector<KindGain>>;

KindGains kind_gains(const SweepRun& run) {
  const runfile::RunReader& reader = run.reader();
  KindGains gains;
  for (const auto& [attention, context] : run.of(analyses::context_by_attention)) {
    std::vector<std::size_t> layers;
    for (std::size_t layer = 0; layer < reader.attention().size(); ++layer) {
      if (reader.attention()[layer] == attention) layers.push_back(layer);
    }
    auto& row = gains.emplace_back();
    for (const analyses::ContextPoint& point : context.points) {
      row.push_back({analyses::aggregate(reader, "kalman_gain", point.length, layers),
                     analyses::aggregate(reader, "kalman_gain_scaled", point.length, layers)});
    }
  }
  return gains;
}

PaperTable table_by_attention(Runs runs) {
  PaperTable table{
      "context-by-attention",
      "Evidence by context length and kind of attention: means over all layers of a kind, last-quarter queries, with "
      "95% intervals of the mean over chunks; the ratio is of means, Δ the mean change of the chunks' logarithms since "
      "T_min, each with its own interval. A window bounds the keys a query can see whatever the context: a mean over "
      "both kinds is true of neither.",
      {{"attention"},
       {"T (tokens)"},
       {"n_eff (keys)"},
       {"lambda_obs / lambda_obs(T_min)"},
       {"Δ ln lambda_obs (nats)"},
       {"K"},
       {"scaled K"}},
      {}};
  table.caption += stars(
      runs, [](const SweepRun& run) { return analyses::set_apart_in_words(run.of(analyses::context_by_attention)); });
  add_runs(table, runs, [&](const SweepRun& run) {
    const auto& kinds = run.of(analyses::context_by_attention);
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
      const auto& [attention, context] = kinds[kind];
      const std::vector<KindGain>& gains = run.of(kind_gains)[kind];
      for (std::size_t i = 0; i < context.points.size(); ++i) {
        const analyses::ContextPoint& point = context.points[i];
        table.rows.push_back({i == 0 ? fmt::format("{}, {}", attention, layers_in_words(context.deep_layers)) : "",
                              marked_length(point), shown(point.n_eff), shown_ratio(point, i == 0),
                              i == 0 ? "–" : shown(point.log_precision), shown(gains[i].gain), shown(gains[i].scaled)});
      }
    }
  });
  return table;
}

std::string range(const Mean& first, const Mean& last, const char* format) {
  const auto text = [&](const Mean& value) {
    return value ? fmt::format(fmt::runtime(format), value->mean) : std::string("not known");
  };
  return fmt::format("{} to {}", text(first), text(last));
}

std::string context_numbers(const SweepRun& run, bool several) {
  const auto& kinds = run.of(analyses::context_by_attention);
  const analyses::Context& context = kinds.empty() ? run.of(analyses::context) : analyses::widest(kinds).context;
  const analyses::ContextPoint &first = context.points.front(), &last = context.points.back();
  const analyses::Growth& growth = context.growth;
  std::string text;
  if (growth.judged()) {
    const analyses::ContextPoint &from = context.points[growth.first], &to = context.points[growth.last];
    text = fmt::format("{}from {} to {} tokens n_eff goes from {} keys and the mean of lambda_obs is multiplied by {}.",
                       kinds.empty() ? "" : fmt::format("in the {} layers ", analyses::widest(kinds).attention),
                       format_count(from.length.tokens), format_count(to.length.tokens),
                       range(from.n_eff, to.n_eff, "{:.1f}"), shown(growth.precision_ratio));
  } else {
    text = fmt::format("growth is not judged: {}.", growth.log_precision.mean.reason());
  }
  if (const std::string apart =
          kinds.empty() ? analyses::set_apart_in_words(context) : analyses::set_apart_in_words(kinds);
      !apart.empty())
    text += fmt::format(" Points where growth is not judged: {}.", apart);
  if (first.gate && context.points.size() > 1) {
    text += fmt::format(
        " From {} to {} tokens the trained gate goes from {}; logit(gate) changes by {}, ln lambda_obs by {}, their "
        "difference is {} ({}).",
        format_count(first.length.tokens), format_count(last.length.tokens), range(first.gate, last.gate, "{:.3f}"),
        shown(last.logit_gate), shown(last.log_precision), shown(last.difference), last.difference.basis);
  } else if (!first.gate) {
    text += several ? " It has no values of a gate."
                    : fmt::format(" The gate's panel is left out: {}.", first.gate.reason());
  }
  return text;
}

Caption context_caption(Runs runs) {
  const ContextMarks marks = context_marks(runs);
  const bool by_kind = runs.size() == 1 && marks.lines > 1;
  std::string shows =
      by_kind           ? "Means over last-quarter queries of all layers of a kind of attention"
      : runs.size() > 1 ? "Means over last-quarter queries of each run's deep layers, or, of a run with several kinds "
                          "of attention, of all layers of the kind with the longest window"
                        : fmt::format("Means over last-quarter queries of {}",
                                      layers_in_words(runs.front().of(analyses::context).deep_layers));
  if (marks.intervals) shows += "; bars are 95% intervals of the mean over chunks";
  if (marks.bands) shows += "; bands are one standard deviation over chunk, layer, head and query";
  if (marks.lines > 1) shows += "; ratio and changes are relative to the shortest context of each line";
  if (marks.lines > 1 && marks.gate) shows += "; filled markers ln lambda_obs, hollow ones logit(gate)";
  std::string cannot = marks.bands ? "Bands are spreads over heads, layers and queries, not uncertainty of the mean: a "
                                     "change inside the band can be certain."
                                   : "How much heads, layers and queries differ: only means are drawn.";
  if (!marks.intervals) cannot += " How sure the means are: that takes at least two chunks of a length.";
  if (marks.gate)
    cannot += " A gate that looks flat is not shown to be flat; the equivalence test in the table decides that.";
  return {fmt::format("{}.{} {}", shows, overlay_sentence(runs),
                      sentences_of(runs, [&](const SweepRun& run) { return context_numbers(run, runs.size() > 1); })),
          "Whether evidence grows with context: n_eff counts the keys a query averages over, lambda_obs what they are "
          "worth. Where there is a gate, the panel of changes sets it and ln lambda_obs on the one scale on which they "
          "can be compared, since K = sigmoid(ln lambda_obs − ln lambda).",
          cannot + " Deep layers were chosen by position, not by outcome."};
}

/// Where the words first stand.
Block explanations() {
  return paragraph(
      "n_eff is the number of keys that a query averages over. lambda_obs, the evidence, is the precision of what "
      "attention reads: one over the variance of the weighted mean of the values. K = lambda_obs / (1 + lambda_obs), "
      "the "
      "Kalman gain, is the share of that reading in an estimate that starts from a prior of precision 1. Scaled K is "
      "the "
      "same of values that are divided by their standard deviation.");
}

std::vector<Block> context_blocks(Runs runs) {
  const CaptionedFigure figure{"context", "Evidence and gate against context length", context_caption(runs),
                               context_figure(runs)};
  const bool mixed = std::any_of(runs.begin(), runs.end(),
                                 [](const SweepRun& run) { return !run.of(analyses::context_by_attention).empty(); });
  if (!mixed) return {explanations(), figure, context_table(runs)};
  // The deep layers are the paper's choice. Where they mix kinds of attention, a mean over them is a third answer to a
  // question that has two.
  return {explanations(),      figure,   table_by_attention(runs), FoldStart{"The deep layers alone, of both kinds"},
          context_table(runs), FoldEnd{}};
}

void add_context_json(const SweepRun& run, OrderedJson& summary) {
  summary["context"] = to_json(run.of(analyses::context));
  const auto& kinds = run.of(analyses::context_by_attention);
  if (kinds.empty()) return;
  summary["context_by_attention"] = OrderedJson::object();
  for (const auto& [attention, context] : kinds) {
    OrderedJson entry = to_json(context);
    entry.erase("deep_layers");  // it is all layers of the kind
    entry["layers"] = context.deep_layers;
    summary["context_by_attention"][attention] = std::move(entry);
  }
}

std::vector<CsvTable> context_tables(const SweepRun& run) {
  std::vector<CsvTable> all = {csv_of("context", run.of(analyses::context))};
  const auto& kinds = run.of(analyses::context_by_attention);
  if (kinds.empty()) return all;
  CsvTable joined{"context-by-attention", {}, {}};
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    CsvTable table = csv_of("context-by-attention", kinds[kind].context);
    joined.header = std::move(table.header);
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
      std::vector<Cell>& row = table.rows[i];
      row.insert(row.begin(), kinds[kind].attention);
      append(row, run.of(kind_gains)[kind][i].gain);
      append(row, run.of(kind_gains)[kind][i].scaled);
      joined.rows.push_back(std::move(row));
    }
  }
  for (const char* name : {"kalman_gain", "kalman_gain_scaled"}) {
    for (const char* part : aggregate_columns) joined.header.push_back(fmt::format("{}{}", name, part));
  }
  joined.header.insert(joined.header.begin(), "attention");
  all.push_back(std::move(joined));
  return all;
}

}  // namespace

const Section<SweepRun> context_section = {.name = "context",
                                           .title = "Evidence and gate by context length",
                                           .question = "Does the gate follow the evidence as the context grows?",
                                           .files = {"context", "context-by-attention"},
                                           .keys = {"context", "context_by_attention"},
                                           .blocks = context_blocks,
                                           .add_json = add_context_json,
                                           .tables = context_tables};

}  // namespace gainlens::reports
