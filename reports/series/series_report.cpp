#include "reports/series/series_report.h"

#include "analyses/statistics.h"
#include "core/check.h"
#include "core/counted.h"
#include "core/quantity.h"
#include "reports/figures/figure_parts.h"
#include "reports/page/page_style.h"
#include "reports/page/typography.h"
#include "reports/section.h"
#include "reports/sweep/run_words.h"
#include "reports/words/numbers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <vector>

namespace gainlens::reports {
namespace {

using analyses::PairedDifference, analyses::Series, analyses::SeriesPoint;

/// place, mean, ends of the interval of the change from the first run, moved to the mean. They end where the quantity
/// can go no farther.
Rows rows_of(const Series& series, std::size_t quantity) {
  Rows rows;
  for (const SeriesPoint& point : series.points) {
    const PairedDifference& one = point.quantities[quantity];
    if (!one.second) continue;
    const bool bars = one.interval && one.difference;
    const double first = bars ? *one.second - *one.difference : no_value;
    rows.push_back({point.place, *one.second, bars ? std::max(0.0, first + one.interval->low) : no_value,
                    bars ? std::min(one.quantity.most(), first + one.interval->high) : no_value});
  }
  return rows;
}

/// Names of the runs as ticks; of many runs some are left out, so that no two touch.
std::string named_ticks(const Series& series, double width) {
  std::size_t longest = 1;
  for (const SeriesPoint& point : series.points)
    longest = std::max(longest, std::min<std::size_t>(12, point.label.size()));
  const double room = static_cast<double>(longest) * character_width + label_gap;
  const auto every =
      static_cast<std::size_t>(std::max(1.0, std::ceil(room * static_cast<double>(series.points.size()) / width)));
  std::string ticks = "set xtics (";
  for (std::size_t i = 0; i < series.points.size(); i += every)
    ticks += fmt::format("{}\"{}\" {}", i == 0 ? "" : ", ", plain(printable(series.points[i].label, 12)), i);
  return ticks + ")";
}

/// The panels of a series: three in a row.
PanelGrid grid_of(std::size_t panels, double right) {
  constexpr int columns = 3;
  const int rows = (static_cast<int>(panels) + columns - 1) / columns;
  PanelGrid grid{page_width, 0.7 + 1.75 * rows};
  grid.columns = columns;
  grid.rows = rows;
  grid.left = 0.6;
  grid.right = right;
  grid.across = 0.7;
  return grid;
}

/// Title and axes of one panel.
/// @param reach  of what is drawn
void start_panel(PlotScript& script, std::size_t panel, const analyses::ComparedQuantity& quantity, Extent reach,
                 const Series& series, const PanelGrid& grid) {
  script.panel(panel, quantity.unit == "1" ? to_plot(quantity.label)
                                           : fmt::format("{} ({})", to_plot(quantity.label), to_plot(quantity.unit)));
  if (reach.low == reach.high) {  // a quantity that is the same in all runs
    const double room = std::max(0.1 * std::abs(reach.low), 0.01);
    reach.low = std::max(0.0, reach.low - room);  // no quantity can be below 0
    reach.high += room;
  }
  script.value_axis(series.points.front().place, series.points.back().place);
  if (!series.by_step) script.line("{}", named_ticks(series, grid.panel_width()));
  script.line("set xlabel '{}' offset 0,0.5", series.by_step ? "training step" : "")
      .y_axis(reach.low, reach.high, 0.06);
}

/// Place and mean over the heads that have a value, by layer in their order, of the runs with one.
std::map<std::int64_t, Rows> rows_of_layers(const Series& series, std::size_t quantity) {
  std::map<std::int64_t, Rows> layers;
  for (const SeriesPoint& point : series.points) {
    std::map<std::int64_t, std::vector<double>> values;
    for (const analyses::HeadDifference& head : point.heads)
      if (head.quantities[quantity].second) values[head.layer].push_back(*head.quantities[quantity].second);
    for (const auto& [layer, head_values] : values) layers[layer].push_back({point.place, analyses::mean(head_values)});
  }
  return layers;
}

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
  if (!series.caveats.empty()) blocks.push_back(list(series.caveats));
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

Maybe<Figure> series_figure(const Series& series) {
  const auto& quantities = analyses::compared_quantities();
  std::vector<std::size_t> drawn;
  for (std::size_t i = 0; i < quantities.size(); ++i)
    if (rows_of(series, i).size() >= 2) drawn.push_back(i);
  if (drawn.empty()) return Maybe<Figure>::none("no quantity has a mean in two runs");
  const PanelGrid grid = grid_of(drawn.size(), PanelGrid{}.right);
  PanelFigure script(grid);
  for (std::size_t panel = 0; panel < drawn.size(); ++panel) {
    const Rows points = rows_of(series, drawn[panel]);
    Extent reach;
    reach.add(points, {1, 2, 3});
    start_panel(script, panel, quantities[drawn[panel]], reach, series, grid);
    const std::string block = fmt::format("series_{}", panel);
    script.data(block, points);
    std::string plot = barred_curve(block, points, run_style(0), {1.2, 0.5, 1.3});
    plot.resize(plot.size() - 2);
    script.line("plot {}", plot);
  }
  return script.figure("series");
}

Maybe<Figure> series_layers_figure(const Series& series) {
  if (!series.no_heads.empty()) return Maybe<Figure>::none(series.no_heads);
  std::set<std::int64_t> numbers;
  for (const SeriesPoint& point : series.points)
    for (const analyses::HeadDifference& head : point.heads) numbers.insert(head.layer);
  const std::vector<std::int64_t> layers(numbers.begin(), numbers.end());
  if (layers.empty()) return Maybe<Figure>::none("no layer was measured in all runs");
  const PanelGrid grid = grid_of(analyses::compared_head_quantities.size(), 0.62);
  PanelFigure script(grid);
  script.layer_colours(layers).line("unset colorbox").line("unset key");
  for (std::size_t panel = 0; panel < analyses::compared_head_quantities.size(); ++panel) {
    const auto by_layer = rows_of_layers(series, panel);
    Extent reach;
    for (const auto& [layer, rows] : by_layer)
      for (const std::vector<double>& row : rows) reach.add(row[1]);
    if (by_layer.empty()) reach.add(0);
    start_panel(script, panel, series.points.front().heads.front().quantities[panel].quantity, reach, series, grid);
    std::string plot;
    for (const auto& [layer, rows] : by_layer) {
      const std::string block = fmt::format("layer_{}_{}", panel, layer);
      script.data(block, rows);
      plot += fmt::format(
          "{}${} using 1:2:({:.6g}) with linespoints pointtype 7 pointsize 0.3 linewidth 1.2 "
          "linecolor palette notitle",
          plot.empty() ? "" : ", ", block, layer_colour(layers, layer));
    }
    if (panel == 0)
      script.line("set colorbox user origin screen 0.935, screen 0.2 size screen 0.012, screen 0.6 noborder");
    script.line("plot {}", plot.empty() ? "NaN notitle" : plot);
    script.line("unset colorbox");
  }
  return script.figure("series-layers");
}

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
