#include "reports/frequency/frequency_report.h"

#include "core/counted.h"
#include "reports/figures/figure_parts.h"
#include "reports/page/page_style.h"
#include "reports/page/typography.h"
#include "reports/section.h"
#include "reports/terminal/frequency_terminal.h"

#include <fmt/ranges.h>

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

using Arms = std::span<const ReadFrequency>;

Caption caption_of(const FrequencyReading& reading) {
  if (!reading.options.against.empty())
    return {
        fmt::format("Items in groups of similar {}, from low to high; the mean of the items' means, and of {}. Bars "
                    "are 95% intervals over users and items.",
                    reading.options.against, counted(reading.seeds.size(), "seed")),
        "It shows whether the filter treats items otherwise that differ in it.",
        "A trend does not show that the filter needs to treat them so."};
  return {
      fmt::format(
          "Items in groups of similar training count, from rare to frequent; the mean of the items' means, "
          "and of {}. Bars are 95% intervals over users and items. Items that no user has in training stand at 0.5.",
          counted(reading.seeds.size(), "seed")),
      "It shows whether the filter treats rare items otherwise than frequent ones.",
      "Frequency is an input of the filter, through tau_base: a trend alone does not show that it was learned."};
}

std::vector<Block> blocks(Arms arms) {
  std::vector<Block> all = {CaptionedFigure{"k-by-frequency", "K and λ by item frequency",
                                            caption_of(*arms.front().reading), frequency_figure(arms)}};
  for (std::size_t i = 0; i < arms.size(); ++i) {
    const FrequencyReading& reading = *arms[i].reading;
    all.push_back(list(frequency_lead(reading)));
    for (Table table : {frequency_table(reading), frequency_placebo_table(reading)}) {
      if (arms.size() > 1) table.name += fmt::format("-{}", i + 1);
      all.emplace_back(paper_table(table));
    }
    all.push_back(list(frequency_sentences(reading)));
  }
  all.push_back(list(frequency_notes(*arms.front().reading)));
  return all;
}

void add_json(const ReadFrequency& arm, OrderedJson& summary) {
  summary["k_by_frequency"] = analyses::to_json(*arm.reading);
}

/// @param placebo  its name; empty: the model
void add_rows(CsvTable& table, std::size_t layer, const char* name, const std::string& placebo,
              const std::vector<FrequencyBin>& bins) {
  for (std::size_t i = 0; i < bins.size(); ++i) {
    const FrequencyBin& bin = bins[i];
    table.rows.push_back({cell(layer), std::string(name), placebo, cell(i + 1), cell(bin.items), bin.fewest, bin.most,
                          bin.mean_count, bin.mean});
    append(table.rows.back(), bin.interval);
  }
}

std::vector<CsvTable> tables(const ReadFrequency& arm) {
  CsvTable table{
      "k-by-frequency",
      {"layer", "quantity", "placebo", "bin", "items", "fewest", "most", "mean_count", "mean", "low", "high"},
      {}};
  const auto add = [&](std::size_t layer, const char* name, const FrequencyQuantity& quantity) {
    add_rows(table, layer, name, "", quantity.bins);
    for (std::size_t i = 0; i < quantity.placebos.size(); ++i)
      add_rows(table, layer, name, arm.reading->placebos[i], quantity.placebos[i].bins);
  };
  for (std::size_t layer = 0; layer < arm.reading->layers.size(); ++layer) {
    add(layer, "gain", arm.reading->layers[layer].gain);
    add(layer, "precision", arm.reading->layers[layer].precision);
  }
  std::vector<CsvTable> all = {table, csv_table(frequency_table(*arm.reading))};
  if (!arm.reading->placebos.empty()) all.push_back(csv_table(frequency_placebo_table(*arm.reading)));
  return all;
}

const Section<ReadFrequency> frequency_section = {
    .name = "frequency",
    .title = "K by item frequency",
    .question = "Does the filter treat rare items otherwise?",
    .files = {"k-by-frequency", "k-by-frequency-trends", "k-by-frequency-placebos"},
    .keys = {"k_by_frequency"},
    .blocks = blocks,
    .add_json = add_json,
    .tables = tables};

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

WrittenReport write_frequency_report(std::span<const FrequencyReading> readings, const std::filesystem::path& out) {
  std::vector<ReadFrequency> arms;
  for (const FrequencyReading& reading : readings) arms.push_back({&reading});
  const Section<ReadFrequency>* const sections[] = {&frequency_section};
  MadeReport report = make_report<ReadFrequency>(sections, arms);
  const std::string& against = readings.front().options.against;
  report.title = page_title("K by " + (against.empty() ? "item frequency" : printable(against, 60)));
  report.header = fmt::format(
      "<header>\n<h1>{}</h1>\n<p class=\"lead\">K and the prior precision λ of every layer at the positions that a "
      "ranking reads, by the {} of their item.</p>\n</header>\n",
      against.empty() ? "Does the filter treat rare items otherwise than frequent ones?"
                      : "Which items does the filter treat otherwise?",
      against.empty() ? "training count" : escape_html(against));
  return write_files(report, out);
}

}  // namespace gainlens::reports
