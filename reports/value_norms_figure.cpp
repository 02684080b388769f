#include "core/quantity.h"
#include "reports/figures.h"
#include "reports/plot_script.h"

#include <map>

namespace gainlens::reports {
namespace {

using analyses::Maybe;
using analyses::ValueNorms;
using analyses::ValueNormsResult;

using Rows = std::vector<std::vector<double>>;

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
    rows.push_back({static_cast<double>(sum.layer), sum.key_0 / sum.heads, sum.others / sum.heads, sum.rest / sum.heads});
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

}  // namespace

Maybe<Figure> value_norms_figure(const Maybe<ValueNormsResult>& result) {
  if (!result) return Maybe<Figure>::none(result.reason());
  const Rows points = ratios(*result);
  if (points.empty()) return Maybe<Figure>::none("every value is zero");
  const Rows layers = layer_means(*result);
  const double first_layer = layers.front()[0], last_layer = layers.back()[0];

  PlotScript script;
  script.data("layers", layers).data("ratios", points);
  script.line("set multiplot layout 1,2 margins 0.075,0.92,0.16,0.885 spacing 0.09,0.1").line("set key top left Left reverse font ',9'");
  script.line("set xlabel 'layer'").line("set ylabel '‖{{/:Italic v}}‖_2, mean over chunks and KV heads'").line("set yrange [0:*]");
  script.line("set offsets 0, 0, graph 0.2, 0").line("set xtics {} nomirror", layers.size() > 16 ? 4 : 1);
  script.line("set xrange [{}:{}]", first_layer - 0.5, last_layer + 0.5);
  script.panel(0, fmt::format("value norms, {{/:Italic T}} = {}", format_count(result->length.tokens)));
  script.line(
      "plot $layers using 1:4 with linespoints pointtype 5 pointsize 0.5 linewidth 1.4 dashtype 3 linecolor rgb '{}' title 'every later "
      "key', "
      "$layers using 1:3 with linespoints pointtype 9 pointsize 0.6 linewidth 1.4 dashtype 2 linecolor rgb '{}' title 'keys 1–7', "
      "$layers using 1:2 with linespoints pointtype 7 pointsize 0.6 linewidth 1.8 linecolor rgb '{}' title 'key 0'",
      colour::grey, colour::green, colour::vermillion);

  script.panel(1, "first keys, each KV head")
      .line("set xlabel 'key'")
      .line("set xtics 1")
      .line("set xrange [-0.5:7.5]")
      .line("set offsets 0, 0, graph 0.05, 0");
  script.line("set ylabel '‖{{/:Italic v}}_{{key}}‖_2 / mean of later keys (1)'").layer_colours(first_layer, last_layer);
  script.line("set colorbox user origin screen 0.935, graph 0 size screen 0.014, graph 1 noborder").line("set cblabel 'layer'");
  // layers side by side within a key, so that points do not hide each other
  const double span = last_layer > first_layer ? last_layer - first_layer : 1;
  script.line(
      "plot 1 with lines linewidth 0.8 dashtype 3 linecolor rgb '#777777' notitle, "
      "$ratios using ($1 + 0.6 * (($3 - {}) / {} - 0.5)):2:3 with points pointtype 7 pointsize 0.4 linecolor palette notitle",
      first_layer, span);
  script.line("unset multiplot");
  return Figure{"value-norms", 860, 350, script.text()};
}

}  // namespace gainlens::reports
