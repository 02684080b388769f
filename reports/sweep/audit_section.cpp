#include "analyses/audit.h"
#include "reports/figures/figure_parts.h"
#include "reports/page/typography.h"
#include "reports/sweep/run_words.h"
#include "reports/sweep/sections.h"
#include "reports/words/numbers.h"

#include <algorithm>
#include <cmath>

namespace gainlens::reports {
namespace {

using analyses::LemmaHead;

/// bound, weight of key 0, bound with the gain
Rows rows_of(const SweepRun& run) {
  Rows rows;
  if (!run.of(analyses::audit).lemma) return rows;
  for (const LemmaHead& head : run.of(analyses::audit).lemma->heads) {
    if (!head.set_apart && std::isfinite(head.bound) && std::isfinite(head.bos_mass) && std::isfinite(head.gain_bound))
      rows.push_back({head.bound, head.bos_mass, head.gain_bound});
  }
  return rows;
}

double largest(const Rows& rows, double so_far) {
  for (const auto& row : rows) so_far = std::max(so_far, *std::max_element(row.begin(), row.end()));
  return so_far;
}

/// One run: its two bounds in two colours. Several: the run's colour, hollow with the gain.
std::string points(std::size_t run, bool one) {
  const RunStyle& style = run_style(run);
  return fmt::format(
      "$heads_{0} using 3:2 with points pointtype {1} pointsize 0.45 linewidth 0.8 linecolor rgb '{2}' {3}, "
      "$heads_{0} using 1:2 with points pointtype {4} pointsize 0.45 linecolor rgb '{5}' {6}",
      run, one ? 4 : style.hollow_marker, one ? colour::vermillion : style.colour,
      one ? "title 'bound with the gain'" : "notitle", style.marker, style.colour,
      one ? "title 'bound of the lemma'" : "notitle");
}

/// sink-lemma: the weight of key 0 against the sink lemma's bound, head by head, without and with the gain.
Maybe<Figure> sink_lemma_figure(Runs runs) {
  const bool one = runs.size() == 1;
  PanelGrid grid{one ? column_width : page_width, 2.7};
  grid.top = 0.12;
  grid.right = 0.2;                        // the last tick label
  if (!one) grid.left = grid.right = 1.7;  // square: both axes are weights
  PanelFigure script(grid, name_runs(labels_of(runs), LegendMark::marker));
  std::string plot;
  double top = 0;
  bool any_bound = false;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    const Rows rows = rows_of(runs[run]);
    if (rows.empty()) continue;
    script.data(fmt::format("heads_{}", run), rows);
    plot += ", " + points(run, one);
    top = largest(rows, top);
    for (const std::vector<double>& head : rows) any_bound = any_bound || head[0] > 0 || head[2] > 0;
  }
  if (!plot.empty() && !any_bound)
    return Maybe<Figure>::none("no head has a bound above 0, so that every point would lie on the axis");
  if (plot.empty()) {
    const auto& lemma = runs.front().of(analyses::audit).lemma;
    return Maybe<Figure>::none(lemma ? "no head has a finite bound" : lemma.reason());
  }
  const double reach = top > 0 ? 1.05 * top : 1;
  script.line("set xlabel 'bound on BOS mass' offset 0,0.5").line("set ylabel 'BOS mass' offset 1.4,0");
  script.value_axis(0, reach).y_axis(0, reach, one ? 0.25 : 0.05).line("unset label");
  script.draw_legend();
  script.line("{}", one ? "set key top left Left reverse" : "unset key");
  script.line("plot x <= {:.9g} && x >= 0 ? x : NaN with lines linewidth 0.9 dashtype 2 linecolor rgb '{}' notitle{}",
              reach, colour::grey, plot);
  return script.figure("sink-lemma");
}

CsvTable lemma_csv(const analyses::SinkLemma& lemma) {
  CsvTable table{"sink-lemma",
                 {"layer", "head", "attention", "set_apart", "first_norm", "min_norm", "alignment", "estimate_norm",
                  "bound", "bos_mass", "slack", "slack_min", "vacuous", "gained_norm", "gain_bound", "gain_violated"},
                 {}};
  for (const analyses::LemmaHead& head : lemma.heads) {
    table.rows.push_back({head.layer, head.head, head.attention, std::int64_t{head.set_apart}, head.first_norm,
                          head.min_norm, head.alignment, head.estimate_norm, head.bound, head.bos_mass,
                          cell(head.slack), head.slack_min, head.vacuous, head.gained_norm, head.gain_bound,
                          head.gain_violated});
  }
  return table;
}

PaperTable lemma_table(Runs runs) {
  PaperTable table{
      "sink-lemma",
      "The sink lemma, BOS mass ≥ 1 − (delta + epsilon)/(mu c), at the heads where its bound is largest: "
      "epsilon = norm of the value of BOS, mu = smallest norm of another, c = alignment of the others, "
      "delta = norm of the estimate. Bound: mean, 0 where it is negative. Slack: BOS mass less the bound, where the "
      "bound is above 0; least: of any query, where some bound of the head is above 0. Vacuous: queries "
      "whose bound is not above 0. With K: the bound with the gained estimate in place of delta, and the queries whose "
      "BOS mass lies below it. At most 8 heads; tables/sink-lemma.csv has all.",
      {{"layer"},
       {"head"},
       {"epsilon"},
       {"mu"},
       {"c"},
       {"delta"},
       {"bound"},
       {"BOS mass"},
       {"slack"},
       {"least slack"},
       {"vacuous"},
       {"bound with K"},
       {"below it"}},
      {}};
  constexpr std::size_t most = 8;
  add_runs(table, runs, [&](const SweepRun& run) {
    if (!run.of(analyses::audit).lemma) return;
    std::vector<analyses::LemmaHead> heads = run.of(analyses::audit).lemma->heads;
    std::erase_if(heads, [](const analyses::LemmaHead& head) { return head.set_apart; });
    std::stable_sort(heads.begin(), heads.end(), analyses::binds_more);
    for (std::size_t i = 0; i < std::min(most, heads.size()); ++i) {
      const analyses::LemmaHead& head = heads[i];
      table.rows.push_back({std::to_string(head.layer), std::to_string(head.head), shown(head.first_norm),
                            shown(head.min_norm), shown(head.alignment), shown(head.estimate_norm), shown(head.bound),
                            shown(head.bos_mass), shown(head.slack), shown(analyses::smallest_slack(head)),
                            fmt::format("{:.1f}%", 100 * head.vacuous), shown(head.gain_bound),
                            fmt::format("{:.1f}%", 100 * head.gain_violated)});
    }
  });
  return table;
}

PaperTable prior_shares_table(Runs runs) {
  PaperTable table{"prior-shares",
                   "The prior's share of S + nu sigma0^2 in groups of heads by n_eff: as printed, where it does not "
                   "fade, and as a prior that counts as nu observations.",
                   {{"heads"}, {"n_eff (keys)"}, {"S"}, {"share as printed"}, {"share of nu observations"}},
                   {}};
  add_runs(table, runs, [&](const SweepRun& run) {
    if (!run.of(analyses::audit).prior_shares) return;
    for (const analyses::PriorShare& group : *run.of(analyses::audit).prior_shares) {
      table.rows.push_back({std::to_string(group.heads), shown(group.n_eff), shown(group.residual),
                            shown_percent(group.share), shown_percent(group.fading)});
    }
  });
  return table;
}

PaperTable statements_table(Runs runs) {
  PaperTable table{
      "statements",
      "Statements of the paper that are wrong as printed or depend on the model, beside what a run shows of them.",
      {{"the paper's statement", true}, {"this run", true}, {"instead", true}, {"outcome", true}},
      {}};
  if (runs.size() > 1) table.columns[1].heading = "the runs";
  // Every run has the same statements: one row for each, with what each run says of it.
  const std::vector<analyses::Statement>& statements = runs.front().of(analyses::audit).statements;
  const auto add = [&](std::size_t i) {
    const auto said = [&](const SweepRun& run) -> const analyses::Statement& {
      return run.of(analyses::audit).statements.at(i);
    };
    table.rows.push_back(
        {statements[i].claim, each_run_said(runs, [&](const SweepRun& run) { return said(run).finding; }),
         each_run_said(runs, [&](const SweepRun& run) { return said(run).conclusion; }),
         each_run_said(runs, [&](const SweepRun& run) { return std::string(analyses::name_of(said(run).outcome)); })});
  };
  for (std::size_t i = 0; i < statements.size(); ++i) {
    if (!statements[i].on_recommenders) add(i);
  }
  return table;
}

Caption sink_lemma_caption(Runs runs) {
  return {
      fmt::format("One point a head, means over second-half queries: BOS mass against the bound 1 − "
                  "(delta + epsilon)/(mu c) that the sink lemma puts on it, and, hollow, against the bound with the "
                  "gained estimate for delta. Dashed: equality; the lemma says that no filled point lies below it.{}",
                  overlay_sentence(runs)),
      "Where the lemma binds: points at the left say nothing, as their bound is 0 or below at most queries; filled "
      "points near the line are sinks that it demands. Hollow points below the line are heads that would be free of "
      "the demand with the gain.",
      "The lemma is the triangle inequality in head space, so that agreement is no evidence for the theory around it: "
      "a point below the line would be an error of measurement. The model runs without the gain; what it would learn "
      "with it is not shown."};
}

std::vector<Block> audit_blocks(Runs runs) {
  std::vector<Block> all;
  for (const SweepRun& run : runs) {
    const auto& lemma = run.of(analyses::audit).lemma;
    if (lemma) {
      all.push_back(Html{fmt::format("<p>{}{}</p>\n", label_html(runs, run), to_html(lemma->finding))});
    } else {
      all.push_back(Html{fmt::format("<p class=\"absent\">{}Sink lemma. Left out: {}.</p>\n", label_html(runs, run),
                                     to_html(lemma.reason()))});
    }
  }
  all.push_back(CaptionedFigure{"sink-lemma", "The sink lemma's bound against BOS mass", sink_lemma_caption(runs),
                                sink_lemma_figure(runs)});
  all.push_back(lemma_table(runs));
  all.push_back(prior_shares_table(runs));
  all.push_back(statements_table(runs));
  return all;
}

std::vector<CsvTable> audit_tables(const SweepRun& run) {
  if (const auto& lemma = run.of(analyses::audit).lemma) return {lemma_csv(*lemma)};
  return {};
}

}  // namespace

const Section<SweepRun> audit_section = {
    .name = "audit",
    .title = "Audit of the paper's theory",
    .question = "Does the sink lemma hold, and what do these numbers say about statements of the paper?",
    .files = {"sink-lemma", "prior-shares", "statements"},
    .keys = {"audit"},
    .blocks = audit_blocks,
    .add_json = [](const SweepRun& run, OrderedJson& json) { json["audit"] = to_json(run.of(analyses::audit)); },
    .tables = audit_tables,
    .paper = true};

}  // namespace gainlens::reports
