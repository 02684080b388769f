#include "analyses/filter_layers.h"
#include "analyses/seed_comparison.h"
#include "reports/figures/figure_parts.h"
#include "reports/figures/palette.h"
#include "reports/figures/plot_script.h"
#include "reports/measured.h"
#include "reports/recommend/run_sections.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace gainlens::reports {
namespace {

using analyses::FilterLayer;

/// An arm with a filter.
struct FilteredArm {
  std::string name;
  std::vector<FilterLayer> layers;
};

std::vector<FilteredArm> filtered_arms(const TrainedRun& trained) {
  std::vector<FilteredArm> arms;
  for (std::size_t arm = 0; arm < trained.run().arms.size(); ++arm) {
    std::vector<FilterLayer> layers = analyses::filter_layers(trained.run(), arm);
    if (!layers.empty()) arms.push_back({trained.run().arms[arm], std::move(layers)});
  }
  return arms;
}

void draw_curve(PlotScript& script, const std::vector<FilterLayer>& layers, const std::string& name) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  std::string plot;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    Rows rows;
    const std::vector<double>& values = layers[layer].mean.at(name);
    for (std::size_t epoch = 0; epoch < values.size(); ++epoch) {
      if (std::isnan(values[epoch])) continue;
      rows.push_back({static_cast<double>(epoch + 1), values[epoch]});
      low = std::min(low, values[epoch]), high = std::max(high, values[epoch]);
    }
    if (rows.empty()) continue;
    const std::string block = fmt::format("{}_{}", name, layer);
    script.data(block, rows);
    const LayerStyle& style = layer_style(layer);
    plot += fmt::format("{}${} using 1:2 with lines linewidth 2 dashtype {} linecolor rgb '{}' notitle",
                        plot.empty() ? "" : ", ", block, style.dash, style.colour);
  }
  if (plot.empty())
    script.line("unset ytics").line("set yrange [0:1]").line("plot NaN notitle").line("set ytics");
  else
    script.y_axis(low, high, 0.06).line("plot {}", plot);
}

Maybe<Figure> filter_figure(const FilteredArm& arm, const std::string& name) {
  const auto known = [](const FilterLayer& layer) {
    const std::vector<double>& gain = layer.mean.at("gain");
    return std::any_of(gain.begin(), gain.end(), [](double value) { return std::isfinite(value); });
  };
  if (!std::any_of(arm.layers.begin(), arm.layers.end(), known))
    return Maybe<Figure>::none("the filter was not in force after any epoch that all seeds have");
  if (arm.layers.size() > max_runs) return too_many(arm.layers.size(), "layers");
  std::vector<LegendEntry> legend;
  for (std::size_t layer = 0; layer < arm.layers.size(); ++layer)
    legend.push_back({fmt::format("layer {}", layer), layer_style(layer).colour, 0, layer_style(layer).dash});
  PanelGrid grid{page_width, 3.6};
  grid.rows = grid.columns = 2;
  grid.left = 0.6;
  grid.across = 0.65;
  PanelFigure script(grid, legend);
  const std::size_t epochs = arm.layers.front().mean.at("gain").size();
  script.value_axis(1, static_cast<double>(std::max<std::size_t>(epochs, 2)));
  if (epochs <= 5) script.line("set xtics 1");
  script.line("set xlabel 'epoch' offset 0,0.5");
  const std::pair<const char*, const char*> panels[] = {{"gain", "Kalman gain"},
                                                        {"precision", "precision before the layer"},
                                                        {"observation_precision", "precision of observations"},
                                                        {"process_noise", "process noise"}};
  std::size_t place = 0;
  for (const auto& [curve, title] : panels) {
    script.panel(place, title);
    draw_curve(script, arm.layers, curve);
  }
  return script.figure(name);
}

/// Mean (standard deviation) over seeds, in three digits.
std::string over_seeds(const std::vector<double>& values) {
  const analyses::ArmSummary summary = analyses::arm_summary(values);
  if (std::isnan(summary.mean)) return "–";
  if (!summary.deviation) return fmt::format("{:.3g}", summary.mean);
  return fmt::format("{:.3g} ({:.2g})", summary.mean, *summary.deviation);
}

/// "0.05, 0.21, 0.24" of h, e and v: means over seeds. A dash where a run of an earlier version does not have them.
std::string sizes(const FilterLayer& layer) {
  std::vector<std::string> found;
  for (const char* name : {"stream_size", "estimate_size", "value_size"}) {
    const double mean = analyses::arm_summary(layer.tested.at(name)).mean;
    found.push_back(std::isnan(mean) ? "–" : fmt::format("{:.2g}", mean));
  }
  return fmt::format("{}", fmt::join(found, ", "));
}

PaperTable filter_table(const std::vector<FilteredArm>& arms) {
  PaperTable table{
      "filter",
      "What the filter did in each layer at the epoch whose weights were tested, on training sequences "
      "of up to 256 users, without dropout: means over positions and dimensions. Mean (standard "
      "deviation) over seeds. Precisions are before the layer, and of what its attention observes. Sizes are root "
      "mean squares of the stream h before the layer, of the estimate e and of the values v. The paper's "
      "SASRec on Sports has a precision of 10 to 16 before layer 1 and a gain of .77 to .85 in it.",
      {{"layer", true},
       {"precision"},
       {"observed"},
       {"at bound"},
       {"gain"},
       {"process noise"},
       {"(1 + J)²"},
       {"decay"},
       {"energy of J"},
       {"size of h, e, v"}},
      {}};
  for (const FilteredArm& arm : arms) {
    if (arms.size() > 1) table.rows.push_back({arm.name});
    for (std::size_t layer = 0; layer < arm.layers.size(); ++layer) {
      std::vector<std::string> row{std::to_string(layer)};
      for (const char* name : {"precision", "observation_precision", "share_at_most", "gain", "process_noise",
                               "stretch", "decay", "jacobian_energy"})
        row.push_back(over_seeds(arm.layers[layer].tested.at(name)));
      row.push_back(sizes(arm.layers[layer]));
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

std::vector<Block> filter_blocks(TrainedRuns runs) {
  const std::vector<FilteredArm> arms = filtered_arms(runs.front());
  if (arms.empty()) return {};
  const Caption caption = {
      "(a) The Kalman gain, (b) the precision of the stream before the layer, (c) the precision of what attention "
      "observes, (d) the process noise Q: means over positions, dimensions and seeds after each epoch, on training "
      "sequences without dropout. Layers differ in their dashes. A curve ends where the first seed ends. It begins "
      "when the filter is in force.",
      "A precision that grows from layer to layer while Q stays near 0 is a ratchet: each layer adds to what is known, "
      "nothing takes away from it, and the gain of later layers falls whatever they observe.",
      "A precision at its bound says nothing of the layer. Precisions have the scale of the stream; those of two "
      "models cannot be compared."};
  std::vector<Block> found;
  found.reserve(arms.size() + 2);
  const std::size_t drawn = std::min(arms.size(), max_runs);
  for (std::size_t i = 0; i < drawn; ++i) {
    const std::string name = i == 0 ? "filter" : fmt::format("filter-{}", i + 1);
    found.emplace_back(CaptionedFigure{name, fmt::format("The filter of {}, by layer", arms[i].name), caption,
                                       filter_figure(arms[i], name)});
  }
  if (drawn < arms.size())
    found.push_back(
        absence(fmt::format("{} more arms have a filter; the table has their numbers.", arms.size() - drawn)));
  found.emplace_back(filter_table(arms));
  return found;
}

std::vector<CsvTable> filter_tables(const TrainedRun& trained) {
  CsvTable table{"filter", {"arm", "layer", "epoch"}, {}};
  for (const runfile::FilterCurve& curve : runfile::filter_curves()) table.header.emplace_back(curve.name);
  for (const FilteredArm& arm : filtered_arms(trained)) {
    for (std::size_t layer = 0; layer < arm.layers.size(); ++layer) {
      const std::size_t epochs = arm.layers[layer].mean.at("gain").size();
      for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
        std::vector<Cell> row{arm.name, static_cast<std::int64_t>(layer), static_cast<std::int64_t>(epoch + 1)};
        for (const runfile::FilterCurve& curve : runfile::filter_curves())
          row.emplace_back(arm.layers[layer].mean.at(std::string(curve.name))[epoch]);
        table.rows.push_back(std::move(row));
      }
    }
  }
  if (table.rows.empty()) return {};
  return {table};
}

}  // namespace

const Section<TrainedRun> filter_section = {.name = "filter",
                                            .title = "The filter, by layer",
                                            .question = "What do precisions and gains do in each layer?",
                                            .files = {"filter"},
                                            .blocks = filter_blocks,
                                            .tables = filter_tables};

}  // namespace gainlens::reports
