#include "analyses/value_norms.h"
#include "core/quantity.h"
#include "reports/figures/figure_parts.h"
#include "reports/sweep/run_words.h"
#include "reports/sweep/sections.h"

#include <algorithm>
#include <map>

namespace gainlens::reports {
namespace {

using analyses::ValueNorms;
using analyses::ValueNormsResult;

/// One row for each layer: layer, means over KV heads of key 0, of the other first keys, and of the rest.
Rows layer_means(const ValueNormsResult& result) {
  struct Sums {
    double key_0 = 0, others = 0, rest = 0, heads = 0;
    std::int64_t layer = 0;
  };
  std::map<std::size_t, Sums> sums;
  for (const ValueNorms& head : result.heads) {
    Sums& sum = sums[head.layer_position];
    double others = 0;
    for (std::size_t key = 1; key < head.first.size(); ++key) others += head.first[key];
    sum.layer = head.layer;
    sum.key_0 += head.first[0];
    sum.others += others / static_cast<double>(head.first.size() - 1);
    sum.rest += head.rest;
    sum.heads += 1;
  }
  Rows rows;
  for (const auto& [position, sum] : sums) {
    rows.push_back(
        {static_cast<double>(sum.layer), sum.key_0 / sum.heads, sum.others / sum.heads, sum.rest / sum.heads});
  }
  return rows;
}

/// One row for each (layer, KV head, key): key, norm over the mean norm of the rest, layer.
Rows ratios(const ValueNormsResult& result) {
  Rows rows;
  for (const ValueNorms& head : result.heads) {
    if (!(head.rest > 0)) continue;
    for (std::size_t key = 0; key < head.first.size(); ++key) {
      rows.push_back({static_cast<double>(key), head.first[key] / head.rest, static_cast<double>(head.layer)});
    }
  }
  return rows;
}

/// One row for each key: key, mean over layers and KV heads of its ratio, for one of several runs.
Rows mean_ratios(const Rows& points, std::size_t run, std::size_t runs) {
  std::map<double, std::pair<double, double>> sums;  // key -> sum, number
  for (const std::vector<double>& point : points) {
    sums[point[0]].first += point[1];
    sums[point[0]].second += 1;
  }
  Rows rows;
  for (const auto& [key, sum] : sums) {
    rows.push_back(
        {key + 0.1 * (static_cast<double>(run) - 0.5 * static_cast<double>(runs - 1)), sum.first / sum.second});
  }
  return rows;
}

std::string one_run_by_layer() {
  return fmt::format(
      "$layers_0 using 1:4 with linespoints pointtype 4 pointsize 0.45 linewidth 1.1 dashtype 3 linecolor rgb '{}' "
      "notitle, "
      "$layers_0 using 1:3 with linespoints pointtype 9 pointsize 0.5 linewidth 1.1 dashtype 2 linecolor rgb '{}' "
      "notitle, "
      "$layers_0 using 1:2 with linespoints pointtype 7 pointsize 0.5 linewidth 1.3 linecolor rgb '{}' notitle",
      colour::grey, colour::green, colour::vermillion);
}

/// Layers side by side within a key, so that points do not hide each other.
std::string one_run_by_key(double first_layer, double last_layer) {
  const double span = last_layer > first_layer ? last_layer - first_layer : 1;
  const std::string place = fmt::format("($1 + 0.6 * (($3 - {}) / {} - 0.5)):2", first_layer, span);
  return fmt::format(
      "$ratios_0 using {0} with points pointtype 7 pointsize 0.4 linecolor rgb '{1}' notitle, "
      "$ratios_0 using {0}:3 with points pointtype 7 pointsize 0.28 linecolor palette notitle",
      place, colour::grey);
}

/// What the panels plot.
struct Plots {
  std::string by_layer;
  std::string by_key;
  double first_layer = 1e9;
  double last_layer = -1e9;
  Extent norms;  ///< that are drawn
  std::size_t layers = 0;
};

void add_run(Plots& plots, std::size_t run) {
  const RunStyle& style = run_style(run);
  const std::string separator = plots.by_layer.empty() ? "" : ", ";
  plots.by_layer +=
      separator +
      fmt::format(
          "$layers_{0} using 1:4 with linespoints pointtype {1} pointsize 0.5 linewidth 1.1 dashtype 3 linecolor rgb "
          "'{3}' "
          "notitle, $layers_{0} using 1:2 with linespoints pointtype {2} pointsize 0.5 linewidth 1.3 dashtype {4} "
          "linecolor rgb '{3}' notitle",
          run, style.hollow_marker, style.marker, style.colour, style.dash);
  plots.by_key +=
      separator + fmt::format(
                      "$ratios_{} using 1:2 with linespoints pointtype {} pointsize 0.5 linewidth 1.1 dashtype {} "
                      "linecolor rgb '{}' notitle",
                      run, style.marker, style.dash, style.colour);
}

/// Adds the data of every run that has some; `plots` names them.
Plots collect(PlotScript& script, Runs runs) {
  Plots plots;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    const auto& result = runs[run].of(value_norms_of);
    const Rows points = result ? ratios(*result) : Rows{};
    if (points.empty()) continue;
    const Rows layers = layer_means(*result);
    plots.first_layer = std::min(plots.first_layer, layers.front()[0]);
    plots.last_layer = std::max(plots.last_layer, layers.back()[0]);
    plots.layers = std::max(plots.layers, layers.size());
    plots.norms.add(layers, {1, 2, 3});
    script.data(fmt::format("layers_{}", run), layers);
    script.data(fmt::format("ratios_{}", run), runs.size() == 1 ? points : mean_ratios(points, run, runs.size()));
    if (runs.size() > 1) add_run(plots, run);
  }
  if (runs.size() == 1 && plots.layers > 0) {
    plots.by_layer = one_run_by_layer();
    plots.by_key = one_run_by_key(plots.first_layer, plots.last_layer);
  }
  return plots;
}

/// value-norms: norms of the first keys' values against those of the others.
Maybe<Figure> value_norms_figure(Runs runs) {
  const bool one = runs.size() == 1;
  std::vector<LegendEntry> legend = name_runs(labels_of(runs));
  if (one)
    legend = {{"BOS", colour::vermillion, 7, 1}, {"keys 1–7", colour::green, 9, 2}, {"later keys", colour::grey, 4, 3}};
  PanelGrid grid{page_width, 2.1};
  grid.columns = 2;
  grid.right = one ? 0.55 : 0.12;
  PanelFigure script(grid, legend);
  const Plots plots = collect(script, runs);
  if (plots.layers == 0) {
    const auto& result = runs.front().of(value_norms_of);
    return Maybe<Figure>::none(result ? "every value is zero" : result.reason());
  }
  // The first layers' values can be ten times as long as the others'.
  const bool logarithmic = plots.norms.low > 0 && plots.norms.high > 10 * plots.norms.low;
  script.line("set offsets 0, 0, graph 0.06, 0").line("unset key");
  if (logarithmic)
    script.line("set logscale y").line("set yrange [{:.9g}:{:.9g}]", 0.8 * plots.norms.low, 1.25 * plots.norms.high);
  script.line("set xlabel 'layer' offset 0,0.5")
      .line("{}", logarithmic ? "" : "set yrange [0:*]")
      .line("set xtics {} nomirror", plots.layers > 16 ? 4 : 1);
  script.line("set xrange [{}:{}]", plots.first_layer - 0.5, plots.last_layer + 0.5);
  script.panel(0, "value norm ‖{/:Italic v}‖_2" + std::string(one ? "" : ": BOS; later keys dotted"));
  script.line("plot {}", plots.by_layer);
  script.line("unset logscale y").line("set yrange [0:*]");

  script.panel(1, "‖{/:Italic v}‖_2 relative to later keys")
      .line("set xlabel 'key' offset 0,0.5")
      .line("set xtics ('BOS' 0, '1' 1, '2' 2, '3' 3, '4' 4, '5' 5, '6' 6, '7' 7)");
  script.line("set xrange [-0.5:7.5]").line("set offsets 0, 0, graph 0.06, 0");
  if (one) {
    script.layer_colours(plots.first_layer, plots.last_layer);
    script.line("set colorbox user origin screen 0.935, graph 0 size screen 0.012, graph 1 noborder")
        .line("set label 'layer' at screen 0.935, graph 1 left offset 0,0.8");
  }
  script.line("plot 1 with lines linewidth 0.7 dashtype 3 linecolor rgb '{}' notitle, {}", colour::grey, plots.by_key);
  return script.figure("value-norms");
}

CsvTable norms_csv(const analyses::ValueNormsResult& result) {
  CsvTable table{"value-norms", {"layer", "kv_head"}, {}};
  for (std::size_t key = 0; key < result.heads.front().first.size(); ++key)
    table.header.push_back(fmt::format("key_{}", key));
  table.header.emplace_back("later_keys");
  for (const analyses::ValueNorms& head : result.heads) {
    std::vector<Cell> row = {head.layer, head.kv_head};
    for (const double norm : head.first) row.emplace_back(norm);
    row.emplace_back(head.rest);
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string norm_tokens(const SweepRun& run) {
  return run.of(value_norms_of) ? format_count(run.of(value_norms_of)->length.tokens) : "no";
}

std::string norm_numbers(const SweepRun& run) {
  if (!run.of(value_norms_of)) return fmt::format("left out: {}.", run.of(value_norms_of).reason());
  double sum = 0, heads = 0;
  for (const analyses::ValueNorms& head : run.of(value_norms_of)->heads) {
    if (!(head.rest > 0)) continue;
    sum += head.first[0] / head.rest;
    heads += 1;
  }
  if (heads == 0) return "every value beyond the first keys is zero.";
  return fmt::format(
      "on average over layers and KV heads the value of BOS is {:.2f} times as long as that of a key beyond the "
      "first eight.",
      sum / heads);
}

Caption value_norms_caption(Runs runs) {
  const auto drawn =
      std::find_if(runs.begin(), runs.end(), [](const SweepRun& run) { return bool(run.of(value_norms_of)); });
  if (drawn == runs.end()) return {};
  return {fmt::format("Euclidean norms of value vectors at the longest context ({} tokens), means over chunks{}.{} {}",
                      runs_said(runs, norm_tokens),
                      runs.size() > 1 ? " and KV heads" : "; in (b) one point a KV head, coloured by layer",
                      overlay_sentence(runs), sentences_of(runs, norm_numbers)),
          "Whether the value that a sink attends to is short, which the sink-necessity lemma asks for.",
          "A short value of BOS does not show that a head preserves its state by it: that takes the attention it gets, "
          "which the audit sets against the bound."};
}

std::vector<Block> value_norms_blocks(Runs runs) {
  return {CaptionedFigure{"value-norms", "Value norms of the first keys", value_norms_caption(runs),
                          value_norms_figure(runs)}};
}

void add_value_norms_json(const SweepRun& run, OrderedJson& summary) {
  put(summary, "value_norms", run.of(value_norms_of));
}

std::vector<CsvTable> value_norms_tables(const SweepRun& run) {
  if (const auto& norms = run.of(value_norms_of)) return {norms_csv(*norms)};
  return {};
}

}  // namespace

Maybe<analyses::ValueNormsResult> value_norms_of(const SweepRun& run) {
  return analyses::value_norms(run.reader());
}

const Section<SweepRun> value_norms_section = {.name = "value-norms",
                                               .title = "Values of the first keys",
                                               .question = "Are the values of the first keys small?",
                                               .files = {"value-norms"},
                                               .keys = {"value_norms"},
                                               .blocks = value_norms_blocks,
                                               .add_json = add_value_norms_json,
                                               .tables = value_norms_tables};

}  // namespace gainlens::reports
