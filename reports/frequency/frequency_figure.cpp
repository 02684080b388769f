#include "reports/figures/figure_parts.h"
#include "reports/figures/palette.h"
#include "reports/figures/plot_script.h"
#include "reports/frequency/frequency_report.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::reports {
namespace {

using analyses::FrequencyBin;
using analyses::FrequencyQuantity;
using analyses::FrequencyReading;

/// Where items stand that are in no training item: a logarithmic axis has no 0.
constexpr double min_count = 0.5;

/// count, mean, ends of the interval
/// @param counts  whether the items are ordered by training counts
Rows rows_of(const std::vector<FrequencyBin>& bins, bool counts) {
  Rows rows;
  for (const FrequencyBin& bin : bins)
    rows.push_back(barred_point(counts ? std::max(bin.mean_count, min_count) : bin.mean_count, bin.mean, bin.interval));
  return rows;
}

/// A curve of the figure: an arm, or a placebo of one.
struct Curve {
  const FrequencyReading* reading;
  std::optional<std::size_t> placebo;

  std::string label() const {
    return placebo ? fmt::format("placebo {}", reading->placebos[*placebo]) : fmt::format("arm {}", reading->arm);
  }
  const std::vector<FrequencyBin>& bins(const FrequencyQuantity& quantity) const {
    return placebo ? quantity.placebos[*placebo].bins : quantity.bins;
  }
};

std::vector<Curve> curves_of(std::span<const ReadFrequency> arms) {
  std::vector<Curve> curves;
  for (const ReadFrequency& arm : arms) {
    curves.push_back({arm.reading, std::nullopt});
    for (std::size_t i = 0; i < arm.reading->placebos.size(); ++i) curves.push_back({arm.reading, i});
  }
  return curves;
}

void draw_panel(PlotScript& script, const std::vector<Curve>& curves, std::size_t layer,
                FrequencyQuantity FrequencyReading::Layer::*which, std::string_view name) {
  std::string plot;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const FrequencyReading& reading = *curves[i].reading;
    if (layer >= reading.layers.size()) continue;
    const Rows rows = rows_of(curves[i].bins(reading.layers[layer].*which), reading.options.against.empty());
    const std::string block = fmt::format("{}_{}_{}", name, layer, i);
    script.data(block, rows);
    plot += barred_curve(block, rows, run_style(i), {1.0, 0.4, 1.2});
  }
  plot.resize(plot.size() - 2);
  script.line("plot {}", plot);
}

}  // namespace

Maybe<Figure> frequency_figure(std::span<const ReadFrequency> arms) {
  using Missing = Maybe<Figure>;
  const std::vector<Curve> curves = curves_of(arms);
  if (curves.size() > max_runs) return too_many(curves.size(), "curves of arms and placebos");
  std::size_t layers = 0;
  for (const ReadFrequency& arm : arms) layers = std::max(layers, arm.reading->layers.size());
  std::vector<std::string> labels;
  for (const Curve& curve : curves) labels.push_back(curve.label());
  if (2 * layers > max_panels)
    return Missing::none(fmt::format("{} layers; {} panels fit one figure", layers, max_panels));
  const std::vector<LegendEntry> legend = curves.size() > 1 ? name_runs(labels) : std::vector<LegendEntry>();
  PanelGrid grid{page_width, 0.3 + 1.75 * static_cast<double>(layers)};
  grid.rows = static_cast<int>(layers);
  grid.columns = 2;
  grid.left = 0.6;
  grid.right = 0.16;  // half of the last label
  grid.across = 0.7;
  grid.bottom = 0.42;
  PanelFigure script(grid, legend);
  const std::string& against = arms.front().reading->options.against;
  if (against.empty()) script.line("set logscale x");
  script.line("set xlabel \"{} of the items\" offset 0,0.5", against.empty() ? "training count" : plain(against));
  for (std::size_t layer = 0; layer < layers; ++layer) {
    script.panel(2 * layer, fmt::format("layer {}: gain K", layer));
    draw_panel(script, curves, layer, &FrequencyReading::Layer::gain, "gain");
    script.panel(2 * layer + 1, fmt::format("layer {}: prior precision λ", layer));
    draw_panel(script, curves, layer, &FrequencyReading::Layer::precision, "precision");
  }
  return script.figure("k-by-frequency");
}

}  // namespace gainlens::reports
