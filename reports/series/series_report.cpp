#include "reports/series/series_report.h"

#include "core/check.h"
#include "core/counted.h"
#include "core/quantity.h"
#include "reports/page/page_style.h"
#include "reports/page/typography.h"
#include "reports/section.h"
#include "reports/sweep/run_names.h"
#include "reports/words/numbers.h"

#include <algorithm>
#include <span>
#include <vector>

namespace gainlens::reports {
namespace {

using analyses::PairedDifference;
using analyses::SeriesPoint;
using Readings = std::span<const ReadSeries>;

std::string heading_of(const analyses::ComparedQuantity& quantity) {
  return quantity.unit == "1" ? std::string(quantity.label) : fmt::format("{} ({})", quantity.label, quantity.unit);
}

/// Runs by quantities: the means, without those that no run has.
PaperTable series_table(const analyses::Series& series) {
  const auto& quantities = analyses::compared_quantities();
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < quantities.size(); ++i)
    if (std::ranges::any_of(series.points,
                            [i](const SeriesPoint& point) { return static_cast<bool>(point.quantities[i].second); }))
      kept.push_back(i);
  PaperTable table{"series",
                   fmt::format("Means at {} tokens, run by run. tables/series.csv has the changes from the first run "
                               "with their intervals.",
                               format_count(series.tokens)),
                   {{"run", true, true}},
                   {}};
  for (const std::size_t i : kept) table.columns.push_back({heading_of(quantities[i])});
  for (const SeriesPoint& point : series.points) {
    std::vector<std::string>& row = table.rows.emplace_back();
    row.push_back(point.label);
    for (const std::size_t i : kept) row.push_back(shown(point.quantities[i].second));
  }
  return table;
}

std::vector<Block> series_blocks(Readings readings) {
  const analyses::Series& series = *readings.front().series;
  std::vector<Block> blocks{
      CaptionedFigure{
          "series",
          "The runs along the axis",
          {fmt::format(
               "Means of {} at {} tokens, {}. Bars: 95% interval of the change from the first run, over chunks, "
               "where chunks are paired. They are drawn around the mean, and end where the quantity can go no farther "
               "(0, and of shares 1); tables/series.csv has them whole.",
               counted(series.points.size(), "run"), format_count(series.tokens),
               series.by_step ? "by training step" : "in the order given"),
           "It shows when in a training sinks and evidence appear, or how related models differ.",
           "Intervals cover other text of this kind, and not another training. There is no correction for the number "
           "of "
           "runs and quantities."},
          series_figure(series)},
      series_table(series)};
  if (series.no_heads.empty()) {
    blocks.emplace_back(CaptionedFigure{
        "series-layers",
        "Layers along the axis",
        {fmt::format("Means over the heads of each layer at {} tokens; a colour for each layer.",
                     format_count(series.tokens)),
         "It shows in which layers a quantity changes, and when.",
         "Differences between the heads of a layer: tables/series-heads.csv has every head, with its change from the "
         "first run."},
        series_layers_figure(series)});
  } else {
    blocks.push_back(absence(fmt::format("Layers and heads are not compared: {}.", series.no_heads)));
  }
  std::string items;
  for (const std::string& caveat : series.caveats) items += fmt::format("<li>{}</li>\n", to_html(caveat));
  if (!items.empty()) blocks.push_back(Html{fmt::format("<ul>\n{}</ul>\n", items)});
  return blocks;
}

std::vector<CsvTable> series_tables(const ReadSeries& reading) {
  CsvTable table{
      "series",
      {"run", "place", "tokens", "quantity", "unit", "mean", "difference_from_first", "low", "high", "pairs"},
      {}};
  for (const SeriesPoint& point : reading.series->points) {
    for (const PairedDifference& one : point.quantities) {
      std::vector<Cell>& row = table.rows.emplace_back();
      row = {point.label,
             point.place,
             reading.series->tokens,
             std::string(one.quantity.name),
             std::string(one.quantity.unit),
             cell(one.second),
             cell(one.difference)};
      append(row, one.interval);
      row.push_back(cell(one.pairs));
    }
  }
  if (!reading.series->no_heads.empty()) return {table};
  CsvTable heads{"series-heads",
                 {"run", "place", "tokens", "layer", "head", "quantity", "unit", "mean", "difference_from_first", "low",
                  "high", "pairs"},
                 {}};
  for (const SeriesPoint& point : reading.series->points) {
    for (const analyses::HeadDifference& head : point.heads) {
      for (const PairedDifference& one : head.quantities) {
        std::vector<Cell>& row = heads.rows.emplace_back();
        row = {point.label,
               point.place,
               reading.series->tokens,
               head.layer,
               head.head,
               std::string(one.quantity.name),
               std::string(one.quantity.unit),
               cell(one.second),
               cell(one.difference)};
        append(row, one.interval);
        row.push_back(cell(one.pairs));
      }
    }
  }
  return {table, heads};
}

/// "a", "a and b", or "a to c (3 in all)": names in the order of the axis, each once.
std::string named(const std::vector<std::string>& names) {
  std::vector<std::string> different;
  for (const std::string& name : names)
    if (std::ranges::find(different, name) == different.end()) different.push_back(name);
  if (different.size() == 1) return different.front();
  if (different.size() == 2) return fmt::format("{} and {}", different.front(), different.back());
  return fmt::format("{} to {} ({} in all)", different.front(), different.back(), different.size());
}

/// What was run: models and texts in the order of the axis.
struct SeriesNames {
  std::string models, texts;
};

SeriesNames names_of(const analyses::Series& series, std::span<const RunInput> runs) {
  std::vector<std::string> models, texts;
  for (const SeriesPoint& point : series.points) {
    const auto found = std::ranges::find(runs, point.label, &RunInput::label);
    ASSERT(found != runs.end(), "no run is called {}", point.label);
    const SweepRun run(*found, {});
    models.push_back(model_name(run));
    texts.push_back(text_name(run));
  }
  return {named(models), named(texts)};
}

const Section<ReadSeries> series_section = {
    .name = "series",
    .title = "A series of runs",
    .question = "How do heads change along a series of checkpoints?",
    .files = {"series", "series-layers", "series-heads"},
    .keys = {"series"},
    .blocks = series_blocks,
    .add_json = [](const ReadSeries& reading,
                   OrderedJson& summary) { summary["series"] = analyses::to_json(*reading.series); },
    .tables = series_tables};

}  // namespace

WrittenReport write_series_report(const analyses::Series& series, std::span<const RunInput> runs,
                                  const std::filesystem::path& out, const Writing& writing) {
  const ReadSeries readings[] = {{&series}};
  const Section<ReadSeries>* const sections[] = {&series_section};
  MadeReport report = make_report<ReadSeries>(sections, readings);
  const SeriesNames names = names_of(series, runs);
  report.title = page_title(names.models, names.texts);
  report.header =
      fmt::format("<header>\n<h1>A series of {}</h1>\n<p class=\"lead\">From {} to {}: {} on {}.</p>\n</header>\n",
                  counted(series.points.size(), "run"), escape_html(series.points.front().label),
                  escape_html(series.points.back().label), escape_html(names.models), escape_html(names.texts));
  return write_files(report, out, writing);
}

}  // namespace gainlens::reports
