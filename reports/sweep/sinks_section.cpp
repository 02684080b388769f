#include "analyses/published_sinks.h"
#include "analyses/sink_vs_k.h"
#include "analyses/sinks.h"
#include "reports/figures/figure_parts.h"
#include "reports/page/typography.h"
#include "reports/sweep/run_words.h"
#include "reports/sweep/sections.h"
#include "reports/words/numbers.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

namespace gainlens::reports {
namespace {

using analyses::Correlation, analyses::SinkPoint, analyses::SinkVsK;

struct Panel {
  std::size_t variant;  // of analyses::gain_variants
  std::string_view title;
  std::string_view axis;
};
constexpr std::array<Panel, 3> panels = {{
    {0, "{/:Italic K}", "{/:Italic K}, last quarter"},
    {2, "{/:Italic K} of scaled values", "scaled {/:Italic K}, last quarter"},
    {4, "{/:Italic K} without BOS", "{/:Italic K} of other keys, second half"},
}};

/// How points are drawn: one shape for each group.
struct Group {
  std::string_view block;
  std::string_view title;
  int point_type;
  bool coloured;
};
constexpr std::array<Group, 3> groups = {{
    {"apart", "excluded: BOS outside the window", 6, false},  // drawn first: it must not cover the others
    {"windowed", "windowed attention", 9, true},
    {"full", "global attention", 7, true},
}};

std::size_t group_of(const SinkPoint& point) {
  if (point.set_apart) return 0;
  return point.attention == "global" ? 2 : 1;
}

/// Heads that cannot see BOS have a BOS mass of 0 whatever their K: they say nothing, and would stretch the axis of the
/// others. They are drawn where there are no others.
bool is_drawn(const SinkVsK& result, std::size_t group) {
  return groups[group].coloured || std::all_of(result.points.begin(), result.points.end(),
                                               [](const SinkPoint& point) { return group_of(point) == 0; });
}

/// The layers whose points are coloured, or all if none is.
std::vector<std::int64_t> coloured_layers(const SinkVsK& result) {
  std::set<std::int64_t> coloured, all;
  for (const SinkPoint& point : result.points) {
    all.insert(point.layer);
    if (groups[group_of(point)].coloured) coloured.insert(point.layer);
  }
  const auto& chosen = coloured.empty() ? all : coloured;
  return {chosen.begin(), chosen.end()};
}

Rows rows_of(const SinkVsK& result, std::size_t variant, std::size_t group) {
  Rows rows;
  const std::vector<std::int64_t> layers = coloured_layers(result);
  for (const SinkPoint& point : result.points) {
    if (group_of(point) != group || !std::isfinite(point.bos_mass) || !std::isfinite(point.gain[variant])) continue;
    rows.push_back({point.gain[variant], point.bos_mass, layer_colour(layers, point.layer)});
  }
  return rows;
}

std::string coefficient(const Measured& r) {
  return r ? fmt::format("{:+.2f}", *r) : "none";
}

/// Points of one run, coloured by layer over a rim that shows the palest and the darkest on any ground.
std::string layer_points(const std::string& block, const Group& group) {
  if (!group.coloured) {
    return fmt::format("${} using 1:2 with points pointtype {} pointsize 0.4 linewidth 0.7 linecolor rgb '{}' notitle",
                       block, group.point_type, colour::grey);
  }
  return fmt::format(
      "${0} using 1:2 with points pointtype {1} pointsize 0.5 linecolor rgb '{2}' notitle, "
      "${0} using 1:2:3 with points pointtype {1} pointsize 0.37 linecolor palette notitle",
      block, group.point_type, colour::grey);
}

/// Points of one of several runs: its colour and marker; hollow where excluded.
std::string run_points(const std::string& block, std::size_t group, std::size_t run) {
  const RunStyle& style = run_style(run);
  return fmt::format("${} using 1:2 with points pointtype {} pointsize 0.38 linewidth 0.7 linecolor rgb '{}' notitle",
                     block, group == 0 ? style.hollow_marker : style.marker, style.colour);
}

void label_correlations(PlotScript& script, const analyses::SinkCorrelation& correlation) {
  script.line("set label \"{{/:Italic r}} = {} pooled\" at graph 0.03, graph 0.94 left",
              coefficient(correlation.pooled.pearson));
  script.line("set label \"{{/:Italic r}} = {} within layers\" at graph 0.03, graph 0.85 left",
              coefficient(correlation.within_layers.pearson));
}

void draw(PanelFigure& script, Runs runs, const Panel& panel, std::size_t index) {
  std::string plot;
  Extent extent;
  bool any = false;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    for (std::size_t group = 0; group < groups.size(); ++group) {
      const SinkVsK& result = runs[run].of(analyses::sink_vs_k);
      const Rows rows = rows_of(result, panel.variant, group);
      if (rows.empty() || !is_drawn(result, group)) continue;
      any = true;
      for (const std::vector<double>& row : rows) extent.add(row[0]);
      const std::string block = fmt::format("{}_{}_{}", groups[group].block, index, run);
      script.data(block, rows);
      plot += (runs.size() > 1 ? run_points(block, group, run) : layer_points(block, groups[group])) + ", ";
    }
  }
  script.panel(index, panel.title);
  if (any) {
    plot.resize(plot.size() - 2);
    script.value_axis(extent.low, extent.high);
    const auto& correlation = runs.front().of(analyses::sink_vs_k).correlations[panel.variant];
    if (runs.size() == 1 && correlation) label_correlations(script, *correlation);
  } else {
    script.line("set label \"{}\" at graph 0.5, graph 0.5 center textcolor rgb '{}'", plain("no values in this run"),
                colour::grey);
    plot += "NaN notitle";
  }
  // Above the bar: beside it, the label covers the bar's numbers.
  if (runs.size() == 1 && index + 1 == panels.size())
    script.line("set label 'layer' at screen 0.935, graph 1 left offset 0,0.8");
  script.line("set xlabel '{}' offset 0,0.5", panel.axis).line("plot {}", plot);
}

double largest_mass(Runs runs) {
  double largest = 0;
  for (const SweepRun& run : runs) {
    for (const SinkPoint& point : run.of(analyses::sink_vs_k).points) {
      if (std::isfinite(point.bos_mass)) largest = std::max(largest, point.bos_mass);
    }
  }
  return largest;
}

/// The shapes that are drawn; none where there is one.
std::vector<LegendEntry> name_shapes(const SinkVsK& result) {
  std::vector<LegendEntry> entries;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    const bool occurs = std::any_of(result.points.begin(), result.points.end(),
                                    [&](const SinkPoint& point) { return group_of(point) == group; });
    if (occurs && is_drawn(result, group))
      entries.push_back({std::string(groups[group].title), colour::grey, groups[group].point_type, 0});
  }
  return entries.size() > 1 || (entries.size() == 1 && entries.front().marker == groups[0].point_type)
             ? entries
             : std::vector<LegendEntry>{};
}

bool any_bos(Runs runs) {
  return std::any_of(runs.begin(), runs.end(), [](const SweepRun& run) { return run.of(analyses::sink_vs_k).bos; });
}

/// Where some head reaches them.
void threshold_lines(PlotScript& script, double largest) {
  for (const double threshold : analyses::sink_thresholds) {
    if (threshold > largest) continue;
    script.line(
        "set arrow from graph 0, first {0} to graph 1, first {0} nohead linewidth 0.7 dashtype 3 linecolor rgb '{1}' "
        "back",
        threshold, colour::grey);
  }
}

/// sink-vs-k: BOS mass against K, scaled K, and K without key 0, head by head.
Maybe<Figure> sink_vs_k_figure(Runs runs) {
  const auto drawable = [](const SweepRun& run) {
    return static_cast<bool>(run.of(analyses::sink_vs_k).correlations[0]);
  };
  if (std::none_of(runs.begin(), runs.end(), drawable))
    return Maybe<Figure>::none(runs.front().of(analyses::sink_vs_k).correlations[0].reason());
  const bool one = runs.size() == 1;
  const SinkVsK& first = runs.front().of(analyses::sink_vs_k);
  const std::vector<LegendEntry> legend = one ? name_shapes(first) : name_runs(labels_of(runs), LegendMark::marker);
  const double top = std::max((one ? 1.3 : 1.05) * largest_mass(runs), 0.02);  // room for the coefficients

  PanelGrid grid{page_width, 2.3};
  grid.columns = static_cast<int>(panels.size());
  grid.right = one ? 0.55 : 0.12;
  grid.across = 0.2;
  grid.left = 0.6;  // tick labels and the axis label
  PanelFigure script(grid, legend);
  script.layer_colours(coloured_layers(first)).line("unset colorbox");
  script.y_axis(0, top, 0).line("unset key");
  threshold_lines(script, largest_mass(runs));
  for (std::size_t i = 0; i < panels.size(); ++i) {
    script.line("set ylabel '{}' offset 1.6,0", i == 0 ? (any_bos(runs) ? "BOS mass" : "mass on the first token") : "");
    script.line("set format y '{}'", i == 0 ? "%g" : "");
    if (one && i + 1 == panels.size()) {
      script.line("set colorbox user origin screen 0.935, graph 0 size screen 0.012, graph 1 noborder");
    }
    draw(script, runs, panels[i], i);
  }
  return script.figure("sink-vs-k");
}

CsvTable points_csv(const analyses::SinkVsK& result) {
  CsvTable table{"sink-vs-k", {"layer", "head", "attention", "set_apart", "bos_mass"}, {}};
  for (const analyses::GainVariant& variant : analyses::gain_variants) table.header.emplace_back(variant.name);
  for (const analyses::SinkPoint& point : result.points) {
    std::vector<Cell> row = {point.layer, point.head, point.attention, std::int64_t{point.set_apart}, point.bos_mass};
    for (const double gain : point.gain) row.emplace_back(gain);
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// p of the permutation tests, intervals from leaving out layers and text, and the decision they lead to.
void append_inference(std::vector<Cell>& row, const analyses::SinkInference* inference) {
  if (inference == nullptr) {
    row.insert(row.end(), 9, empty_cell());
    row.emplace_back(std::string());
    return;
  }
  row.push_back(cell(inference->blocks.pearson.p));
  row.push_back(cell(inference->blocks.pearson.null_mean));
  row.emplace_back(inference->blocks.arrangements);
  row.push_back(cell(inference->shift.pearson.p));
  row.push_back(cell(inference->shift.pearson.null_mean));
  const auto add = [&](const auto& left_out) {
    append(row, left_out ? left_out->pearson : Maybe<Interval>::none(left_out.reason()));
  };
  add(inference->layers);
  add(inference->text);
  row.emplace_back(inference->decision.verdict);
}

/// @param inference  of pooled heads; null for a part of them
void append_correlation(CsvTable& table, std::string_view gain, const std::string& group,
                        const analyses::Correlation& c, const analyses::SinkInference* inference) {
  std::vector<Cell> row = {
      std::string(gain),       group, cell(c.points), cell(c.pearson), cell(c.pearson_naive_p), cell(c.spearman),
      cell(c.spearman_naive_p)};
  append_inference(row, inference);
  table.rows.push_back(std::move(row));
}

CsvTable correlations_csv(const analyses::SinkVsK& result) {
  CsvTable table{
      "sink-vs-k-correlations",
      {"gain", "heads", "points", "pearson", "pearson_naive_p", "spearman", "spearman_naive_p", "block_permutation_p",
       "block_null_mean", "block_arrangements", "circular_shift_p", "circular_shift_null_mean", "layers_range_low",
       "layers_range_high", "text_low", "text_high", "decision"},
      {}};
  for (std::size_t v = 0; v < analyses::gain_variants.size(); ++v) {
    const auto& correlation = result.correlations[v];
    if (!correlation) continue;
    const std::string_view gain = analyses::gain_variants[v].meaning;
    append_correlation(table, gain, "pooled", correlation->pooled, &correlation->inference);
    for (const auto& [kind, c] : correlation->within_attention_type) append_correlation(table, gain, kind, c, nullptr);
    append_correlation(table, gain, "within layers", correlation->within_layers, nullptr);
  }
  return table;
}

CsvTable sinks_csv(const analyses::Sinks& sinks) {
  CsvTable table{"sinks",
                 {"layer", "head", "attention", "bos_mass", "kalman_gain", "kalman_gain_scaled", "n_eff", "entropy",
                  "without_first_kalman_gain", "sink_share"},
                 {}};
  for (const analyses::SinkHead& head : sinks.heads) {
    table.rows.push_back({head.layer, head.head, head.attention, head.bos_mass, cell(head.kalman_gain),
                          cell(head.kalman_gain_scaled), cell(head.n_eff), cell(head.entropy),
                          cell(head.without_first_kalman_gain), cell(head.sink_share)});
  }
  return table;
}

std::string permutation(const analyses::PermutationTest& test) {
  if (!test.pearson.p) return "–";
  return shown_p(test.pearson.p);
}

/// The ends for pooled heads: an interval without a text, a range without a layer.
template <typename LeftOut>
std::string left_out(const Maybe<LeftOut>& result) {
  if (!result) return "–";
  const auto& interval = result->pearson;
  return interval ? fmt::format("[{:+.2f}, {:+.2f}]", interval->low, interval->high) : "–";
}

/// Why tests and intervals are missing, each reason once; empty if none is.
std::string refusals(const analyses::SinkVsK& sinks) {
  std::vector<std::string> reasons;
  const auto add = [&](std::string_view test, const std::string& reason) {
    const std::string sentence = fmt::format("{} {}", test, reason);
    if (!reason.empty() && std::find(reasons.begin(), reasons.end(), sentence) == reasons.end())
      reasons.push_back(sentence);
  };
  for (const auto& correlation : sinks.correlations) {
    if (!correlation) continue;
    const analyses::SinkInference& inference = correlation->inference;
    add("Block permutation", inference.blocks.pearson.p ? "" : inference.blocks.pearson.p.reason());
    add("Circular shift", inference.shift.pearson.p ? "" : inference.shift.pearson.p.reason());
    add("Leaving out layers", inference.layers ? "" : inference.layers.reason());
    add("Leaving out text", inference.text ? inference.text->pearson.reason() : inference.text.reason());
  }
  return reasons.empty() ? "" : fmt::format(" {}.", fmt::join(reasons, "; "));
}

std::string resampling_of(const analyses::SinkVsK& sinks) {
  for (const auto& correlation : sinks.correlations) {
    if (!correlation) continue;
    const analyses::PermutationTest& blocks = correlation->inference.blocks;
    return fmt::format("Block permutation: {} distinct, {} {}, seed {}.",
                       analyses::count_arrangements(blocks.arrangements), blocks.resamples,
                       blocks.exact ? "tried (all)" : "drawn", blocks.seed);
  }
  return {};
}

PaperTable inference_table(Runs runs) {
  PaperTable table{
      "sink-vs-k-inference",
      fmt::format("BOS mass against K over heads: Pearson's r, its naive p (heads taken as independent) and the "
                  "inference that does not take them so. The block permutation exchanges KV groups within layers, the "
                  "circular shift moves layers and decides nothing, because a common drift with depth looks like a "
                  "relation to it; what r is by chance alone, where that is not 0, follows it, and p is of the "
                  "difference. Without a layer: the range of r with one layer left out, which has no level. Without a "
                  "text: the 95% interval from leaving out one stretch of text at a time. {}",
                  each_run_said(runs,
                                [](const SweepRun& run) {
                                  return resampling_of(run.of(analyses::sink_vs_k)) +
                                         refusals(run.of(analyses::sink_vs_k));
                                })),
      {{"K of", true},
       {"heads"},
       {"r pooled"},
       {"naive p"},
       {"shift p"},
       {"without a layer (range)"},
       {"without a text (95%)"},
       {"r within"},
       {"naive p"},
       {"block p"},
       {"decision"}},
      {}};
  const auto r = [](const Measured& value, const Measured& by_chance) {
    if (!value) return std::string("–");
    const bool shifted = by_chance && std::abs(*by_chance) >= 0.005;
    return fmt::format("{:+.2f}{}", *value, shifted ? fmt::format(" ({:+.2f} by chance)", *by_chance) : "");
  };
  add_runs(table, runs, [&](const SweepRun& run) {
    for (std::size_t v = 0; v < analyses::gain_variants.size(); ++v) {
      const auto& correlation = run.of(analyses::sink_vs_k).correlations[v];
      if (!correlation) continue;
      const analyses::SinkInference& inference = correlation->inference;
      const analyses::Correlation &pooled = correlation->pooled, &within = correlation->within_layers;
      table.rows.push_back({std::string(analyses::gain_variants[v].meaning), std::to_string(pooled.points),
                            r(pooled.pearson, inference.shift.pearson.null_mean), shown_p(pooled.pearson_naive_p),
                            permutation(inference.shift), left_out(inference.layers), left_out(inference.text),
                            r(within.pearson, inference.blocks.pearson.null_mean), shown_p(within.pearson_naive_p),
                            permutation(inference.blocks), inference.decision.verdict});
    }
  });
  return table;
}

PaperTable sinks_table(Runs runs) {
  const std::size_t most = runs.size() > 1 ? 8 : 20;
  PaperTable table{"sinks",
                   fmt::format("The heads with the largest BOS mass, at most {}: means over chunks at {}. Sink share: "
                               "share of the head's chunks whose mean attention to BOS exceeds 0.3. tables/sinks.csv "
                               "has all heads.",
                               most,
                               each_run_said(runs,
                                             [](const SweepRun& run) {
                                               return analyses::list_lengths(run.of(analyses::sink_vs_k).lengths);
                                             })),
                   {{"layer"},
                    {"head"},
                    {"attention"},
                    {"BOS mass"},
                    {"K"},
                    {"K without BOS"},
                    {"scaled K"},
                    {"n_eff (keys)"},
                    {"entropy (nats)"},
                    {"sink share"}},
                   {}};
  add_runs(table, runs, [&](const SweepRun& run) {
    const auto& sinks = run.of(analyses::sinks);
    if (!sinks) return;
    for (std::size_t i = 0; i < std::min(most, sinks->heads.size()); ++i) {
      const analyses::SinkHead& head = sinks->heads[i];
      if (!(head.bos_mass > 0)) break;  // ranked by mass: no sink comes after
      table.rows.push_back({std::to_string(head.layer), std::to_string(head.head), head.attention, shown(head.bos_mass),
                            shown(head.kalman_gain), shown(head.without_first_kalman_gain),
                            shown(head.kalman_gain_scaled), shown(head.n_eff), shown(head.entropy),
                            shown(head.sink_share)});
    }
  });
  return table;
}

std::string sink_numbers(const SweepRun& run) {
  const analyses::SinkVsK& sinks = run.of(analyses::sink_vs_k);
  std::string text;
  for (const analyses::SinkHeads& heads : sinks.sinks) {
    text += fmt::format("{}{} of {} above {}", text.empty() ? "" : "; ", counted(heads.heads, "head"),
                        sinks.points.size(), heads.threshold);
    if (heads.heads > 0)
      text += fmt::format(" ({}, smallest K {})", layers_in_words(heads.layers), shown(heads.smallest_gain));
  }
  text += '.';
  if (const std::string without = analyses::no_sink(sinks); !without.empty())
    text += " No head is a sink, so this run decides nothing about sinks.";
  if (sinks.late_gain) {
    text += fmt::format(" Late {}: K from {} to {}, largest BOS mass {}.", layers_in_words(sinks.late_layers),
                        shown(sinks.late_gain->low), shown(sinks.late_gain->high), shown(sinks.late_bos_mass));
  }
  if (const analyses::SinkCount& count = sinks.sinks_on_key_0; count.cells > 0)
    text += fmt::format(
        " Sink share of BOS: in {} of {} (head, chunk) pairs ({}) the queries put more than 0.3 of their attention "
        "on it on average.",
        count.sinks, count.cells, shown_percent(sinks.sink_share[0]));
  if (const auto& published = run.of(analyses::published_sinks))
    text += fmt::format(" At the length of the percentages that Gu et al. published, in this run: {}.",
                        analyses::published_sinks_in_words(*published));
  return text;
}

Caption sink_vs_k_caption(Runs runs) {
  const std::string apart = runs_said(runs, [](const SweepRun& run) {
    const analyses::SinkVsK& result = run.of(analyses::sink_vs_k);
    const auto hidden = static_cast<std::size_t>(std::count_if(
        result.points.begin(), result.points.end(), [](const analyses::SinkPoint& point) { return point.set_apart; }));
    if (hidden == 0) return std::string();
    if (hidden == result.points.size()) return std::string("No head can see BOS.");
    return fmt::format("{} that cannot see BOS {} not drawn.", counted(hidden, "head"), hidden == 1 ? "is" : "are");
  });
  return {
      fmt::format(
          "One point a head, means over chunks at {}; dotted lines at BOS mass 0.05 and 0.3, where a head reaches "
          "them.{} {}",
          runs_said(runs,
                    [](const SweepRun& run) { return analyses::list_lengths(run.of(analyses::sink_vs_k).lengths); }),
          (runs.size() > 1 ? std::string(" Each run has its colour and marker.")
                           : std::string(" Colour is the layer.")) +
              (apart.empty() ? "" : " " + apart),
          sentences_of(runs, sink_numbers)),
      "Whether heads that watch BOS are those with a gain near 1: (c) takes BOS out first, and (b) the scale of "
      "the values.",
      "A sink forces n_eff towards 1 and S towards 0, hence K towards 2d/(1+2d): (a) holds some of its relation by "
      "arithmetic. A correlation across layers may be one of depth; that within layers is not. Points are not "
      "independent: the table sets permutation tests beside each naive p."};
}

std::vector<Block> sinks_blocks(Runs runs) {
  std::vector<Block> all = {
      CaptionedFigure{"sink-vs-k", "BOS mass against K", sink_vs_k_caption(runs), sink_vs_k_figure(runs)},
      inference_table(runs), sinks_table(runs)};
  for (const SweepRun& run : runs) {
    const auto& sinks = run.of(analyses::sinks);
    if (!sinks)
      all.push_back(Html{fmt::format("<p class=\"absent\">{}Table of sink heads. Left out: {}.</p>\n",
                                     label_html(runs, run), to_html(sinks.reason()))});
  }
  return all;
}

void add_sinks_json(const SweepRun& run, OrderedJson& summary) {
  summary["sink_vs_k"] = to_json(run.of(analyses::sink_vs_k));
  if (const auto& published = run.of(analyses::published_sinks))
    summary["sink_vs_k"]["published_length"] = {{"tokens", analyses::published_sink_length},
                                                {"sinks", published->sinks},
                                                {"head_chunk_pairs", published->cells},
                                                {"sink_share", published->share()}};
  put(summary, "sinks", run.of(analyses::sinks));
}

std::vector<CsvTable> sinks_tables(const SweepRun& run) {
  std::vector<CsvTable> all = {points_csv(run.of(analyses::sink_vs_k)), correlations_csv(run.of(analyses::sink_vs_k))};
  if (const auto& sinks = run.of(analyses::sinks)) all.push_back(sinks_csv(*sinks));
  return all;
}

}  // namespace

const Section<SweepRun> sinks_section = {
    .name = "sink-vs-k",
    .title = "Sinks and gain",
    .question = "Do heads with much attention on BOS have a gain near 1, and which heads are they?",
    .files = {"sink-vs-k", "sink-vs-k-inference", "sink-vs-k-correlations", "sinks"},
    .keys = {"sink_vs_k", "sinks"},
    .blocks = sinks_blocks,
    .add_json = add_sinks_json,
    .tables = sinks_tables};

}  // namespace gainlens::reports
