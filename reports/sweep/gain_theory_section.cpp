#include "analyses/gain_theory.h"
#include "core/quantity.h"
#include "reports/figures/figure_parts.h"
#include "reports/sweep/run_words.h"
#include "reports/sweep/sections.h"
#include "reports/words/numbers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

namespace gainlens::reports {
namespace {

using analyses::GainTheory;
using analyses::GainTheoryPoint;

/// tokens, K, ends of its interval, predicted K, constant K, scaled K
Rows gain_rows(const GainTheory& theory, std::size_t run, std::size_t runs) {
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

/// gain-theory: K measured and predicted from n_eff and S; relative errors beside those of a constant.
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

CsvTable theory_csv(const analyses::GainTheory& theory) {
  CsvTable table{"gain-theory",
                 {"tokens", "n_eff", "residual", "aggregated_precision", "observation_precision", "kalman_gain",
                  "kalman_gain_scaled", "predicted_gain", "relative_error", "constant_error", "skill"},
                 {}};
  for (const analyses::GainTheoryPoint& point : theory.points) {
    table.rows.push_back({point.length.tokens, mean_cell(point.n_eff), mean_cell(point.residual),
                          cell(point.aggregated_precision), mean_cell(point.observation_precision),
                          mean_cell(point.kalman_gain), mean_cell(point.kalman_gain_scaled), cell(point.predicted_gain),
                          cell(point.relative_error), cell(point.constant_error), cell(point.skill)});
  }
  return table;
}

/// The test of the formula's error on unseen text, length by length.
CsvTable unseen_csv(const analyses::TheoryEquivalence& test) {
  CsvTable table{"gain-theory-unseen",
                 {"tokens", "chunks", "margin", "error", "error_low_90", "error_high_90", "within_margin_p",
                  "beyond_margin_p", "constant_error"},
                 {}};
  for (const analyses::TheoryError& length : test.lengths) {
    table.rows.push_back({length.tokens, test.chunks, test.margin, length.error, length.interval.low,
                          length.interval.high, cell(length.log_ratio.p), cell(length.log_ratio.exceeds_p),
                          length.constant_error});
  }
  return table;
}

PaperTable theory_table(Runs runs) {
  const std::string fitted = each_run_said(runs, [](const SweepRun& run) {
    return "lambda = " + shown(run.of(analyses::gain_theory).prior_precision) + ".";
  });
  PaperTable table{"gain-theory",
                   "Gain theory by context length. lambda* = (n_eff + nu)/(S + nu sigma0^2) of aggregated n_eff and S; "
                   "one lambda is fitted at T_min. " +
                       fitted,
                   {{"T (tokens)"},
                    {"n_eff (keys)"},
                    {"S"},
                    {"lambda*"},
                    {"K measured"},
                    {"K predicted"},
                    {"error (%)"},
                    {"of constant (%)"},
                    {"skill"},
                    {"scaled K"}},
                   {}};
  const auto percent = [](const Measured& share) {
    return share ? fmt::format("{:.2f}", 100 * *share) : std::string("–");
  };
  add_runs(table, runs, [&](const SweepRun& run) {
    for (const analyses::GainTheoryPoint& point : run.of(analyses::gain_theory).points) {
      table.rows.push_back({format_count(point.length.tokens), point.n_eff ? shown(point.n_eff->mean) : "–",
                            point.residual ? shown(point.residual->mean) : "–", shown(point.aggregated_precision),
                            shown(point.kalman_gain), shown(point.predicted_gain), percent(point.relative_error),
                            percent(point.constant_error), shown(point.skill), shown(point.kalman_gain_scaled)});
    }
  });
  return table;
}

std::string shown_error(const analyses::TheoryError& length) {
  const auto percent = [](double share) { return fmt::format("{:+.2f}%", 100 * share); };
  return fmt::format("{} [{}, {}]", percent(length.error), percent(length.interval.low), percent(length.interval.high));
}

void add_gain_checks(PaperTable& table, const analyses::GainTheory& theory) {
  table.rows.push_back({"the chunks it was fitted on", shown_percent(theory.max_relative_error),
                        shown_percent(theory.max_constant_error), shown(theory.skill), "the paper's way"});
  if (theory.unseen) {
    const analyses::TheoryEquivalence& test = *theory.unseen;
    const analyses::TheoryError& worst = test.worst();
    table.rows.push_back({"each chunk left out in turn", shown_percent(test.left_out.relative),
                          shown_percent(test.left_out.constant), shown(test.left_out.skill),
                          fmt::format("lambda from the others; mean over {}", counted(test.chunks, "chunk"))});
    table.rows.push_back({"unseen text of this kind", shown_error(worst), shown_percent(std::abs(worst.constant_error)),
                          "–",
                          fmt::format("at {}, where it is largest; 90% interval from {}; margin ±{:g}%",
                                      format_count(worst.tokens), counted(test.chunks, "chunk"), 100 * test.margin)});
  } else {
    table.rows.push_back({"unseen text of this kind", "–", "–", "–", theory.unseen.reason()});
  }
  if (theory.cells) {
    const analyses::CellErrors& cells = *theory.cells;
    table.rows.push_back(
        {"each deep head by itself", shown_percent(cells.median_error), shown_percent(cells.median_constant_error), "–",
         fmt::format("median over {}; worst {} (layer {}, head {}); better than the constant in {}",
                     counted(cells.cells.size(), "head"), shown_percent(cells.worst.max_relative_error),
                     cells.worst.layer, cells.worst.head, cells.better_than_constant)});
  } else {
    table.rows.push_back({"each deep head by itself", "–", "–", "–", theory.cells.reason()});
  }
}

PaperTable checks_table(Runs runs) {
  PaperTable table{
      "gain-theory-checks",
      fmt::format(
          "How far the gain theory holds beyond what it was fitted on: largest relative error over the lengths, that "
          "of a constant K, and skill. An error within ±{:g}% counts as none; the paper reports {:g}% at most.",
          100 * runs.front().of(analyses::gain_theory).margin, 100 * analyses::paper_theory_error),
      {{"judged on", true}, {"theory"}, {"constant"}, {"skill"}, {"how", true}},
      {}};
  add_runs(table, runs, [&](const SweepRun& run) { add_gain_checks(table, run.of(analyses::gain_theory)); });
  return table;
}

std::string theory_numbers(const SweepRun& run) {
  const analyses::GainTheory& theory = run.of(analyses::gain_theory);
  if (!theory.max_relative_error) return fmt::format("no prediction: {}.", theory.max_relative_error.reason());
  return fmt::format(
      "largest relative error {}, against {} for a constant K; skill {} (1 is perfect, 0 no better than the constant).",
      shown_percent(theory.max_relative_error), shown_percent(theory.max_constant_error), shown(theory.skill));
}

Caption gain_theory_caption(Runs runs) {
  const bool intervals = std::any_of(runs.begin(), runs.end(), [](const SweepRun& run) {
    const auto& points = run.of(analyses::gain_theory).points;
    return std::any_of(points.begin(), points.end(), [](const analyses::GainTheoryPoint& point) {
      return point.kalman_gain && point.kalman_gain->interval;
    });
  });
  return {
      fmt::format("K as measured (markers{}) and as one lambda, solved at the shortest context, predicts it from "
                  "aggregated n_eff and S (lines); errors of this theory (filled) and of a constant K ({}).{} {}",
                  intervals ? ", 95% intervals over chunks" : "", runs.size() > 1 ? "hollow" : "crosses",
                  overlay_sentence(runs), sentences_of(runs, theory_numbers)),
      "Whether one lambda carries K from a short context to long ones, and whether that beats the guess that nothing "
      "changes.",
      "K is computed from n_eff and S, so agreement says that averaging loses little, not that a model uses K. The "
      "lines are fitted and judged on the same chunks; the table of checks tests them on unseen text. Scaled values "
      "have no fitted theory here. lambda* is not the mean of lambda_obs."};
}

std::vector<Block> gain_theory_blocks(Runs runs) {
  return {CaptionedFigure{"gain-theory", "Gain theory", gain_theory_caption(runs), gain_theory_figure(runs)},
          theory_table(runs), checks_table(runs)};
}

void add_gain_theory_json(const SweepRun& run, OrderedJson& summary) {
  summary["gain_theory"] = to_json(run.of(analyses::gain_theory));
}

std::vector<CsvTable> gain_theory_tables(const SweepRun& run) {
  const analyses::GainTheory& theory = run.of(analyses::gain_theory);
  std::vector<CsvTable> all = {theory_csv(theory)};
  if (theory.unseen) all.push_back(unseen_csv(*theory.unseen));
  return all;
}

}  // namespace

const Section<SweepRun> gain_theory_section = {.name = "gain-theory",
                                               .title = "Gain theory",
                                               .question = "Does K follow from n_eff and S, with one lambda?",
                                               .files = {"gain-theory", "gain-theory-checks", "gain-theory-unseen"},
                                               .keys = {"gain_theory"},
                                               .blocks = gain_theory_blocks,
                                               .add_json = add_gain_theory_json,
                                               .tables = gain_theory_tables,
                                               .paper = true};

}  // namespace gainlens::reports
