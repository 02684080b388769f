#include "reports/sweep/depth_section.h"

#include "analyses/depth.h"
#include "core/counted.h"
#include "core/quantity.h"
#include "core/sha256.h"
#include "reports/figures/figure_parts.h"
#include "reports/page/table.h"
#include "reports/sweep/run_words.h"
#include "reports/sweep/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace gainlens::reports {
namespace {

using analyses::DepthAtLength, analyses::DepthMedians, analyses::DepthRow, runfile::depth_start, runfile::DepthReading;

/// The places of a reading in a row: layer, then the starts of filter, then those of gain-one.
std::size_t column_of(DepthReading reading, std::size_t start) {
  return 2 + static_cast<std::size_t>(reading) * runfile::depth_starts.size() + start;
}

std::vector<double> depth_row(double layer, const DepthMedians& medians, bool inverse) {
  std::vector<double> row = {layer};
  for (const auto& by_start : medians) {
    for (const double value : by_start)
      row.push_back(!inverse ? value : value > 0 ? 1 / value : std::numeric_limits<double>::quiet_NaN());
  }
  return row;
}

/// Both readings: the embedding's own variance in full, a tenth and ten times of it thin.
std::string both_readings(const std::string& block) {
  std::string plot;
  for (const DepthReading reading : {DepthReading::filter, DepthReading::gain_one}) {
    const bool filter = reading == DepthReading::filter;
    for (std::size_t start = 0; start < runfile::depth_starts.size(); ++start) {
      plot += plot.empty() ? "" : ", ";
      plot += fmt::format("${} using 1:{} with ", block, column_of(reading, start));
      plot += start == runfile::depth_start
                  ? fmt::format("linespoints pointtype {} pointsize 0.5 linewidth 1.3 dashtype {}", filter ? 7 : 9,
                                filter ? 1 : 2)
                  : std::string("lines linewidth 0.6 dashtype 3");
      plot += fmt::format(" linecolor rgb '{}' notitle", filter ? colour::vermillion : colour::blue);
    }
  }
  return plot;
}

/// What depth.json beside the run says, and why not.
Maybe<std::vector<DepthAtLength>> depth_of(const SweepRun& run) {
  using Found = Maybe<std::vector<DepthAtLength>>;
  const std::filesystem::path folder = run.reader().path().parent_path();
  const auto stored = runfile::read_depth_run(folder);
  if (!stored) return Found::none("the sweep was made without --depth-precision");
  std::error_code error;
  if (!std::filesystem::exists(folder / "request.json", error) ||
      sha256_file(folder / "request.json") != stored->request)
    return Found::none("depth.json is not of this sweep; repeat the sweep with --depth-precision");
  return analyses::depth_by_length(*stored);
}

std::string numbers(const SweepRun& run) {
  const auto& depth = run.of(depth_of);
  if (!depth) return fmt::format("left out: {}.", depth.reason());
  const DepthAtLength& longest = depth->back();
  const auto& last = longest.layers.back();
  return fmt::format("in the last layer K is {:.3g} (filter) and {:.3g} (gain-one), with λ = 1 / P from the embedding.",
                     last.gain[0][depth_start], last.gain[1][depth_start]);
}

std::vector<Block> depth_blocks(Runs runs) {
  const bool asked = std::ranges::any_of(
      runs, [](const SweepRun& run) { return runfile::read_depth_run(run.reader().path().parent_path()).has_value(); });
  if (!asked) return {};
  const auto drawn = std::ranges::find_if(runs, [](const SweepRun& run) { return bool(run.of(depth_of)); });
  const std::string title = "Precision of the stream by depth";
  if (drawn == runs.end())
    return {CaptionedFigure{"depth", title, {}, Maybe<Figure>::none(runs.front().of(depth_of).reason())}};
  const DepthAtLength& longest = drawn->of(depth_of)->back();
  const Caption caption{
      fmt::format("Medians over coordinates and queries of the last quarter at {} tokens{}. Filter: attention's "
                  "estimate and the stream measure one quantity. Gain-one: their errors add. The error of the rule is "
                  "that of the variance after the MLP against drawn errors, median and 5% to 95% of coordinates. {}",
                  format_count(longest.tokens), runs.size() > 1 ? fmt::format(" of {}", drawn->label()) : "",
                  sentences_of(runs, numbers)),
      "How far the gain of a layer depends on what the stream is taken to be, and where the diagonal is a good rule.",
      "The first precision is chosen, and the sum of attention and stream is no filter: neither curve is the precision "
      "of the model."};
  return {CaptionedFigure{"depth", title, caption, depth_figure(longest)},
          paper_table(analyses::layers_of({&longest, 1})), paragraph(analyses::last_layer_words(longest))};
}

void add_depth_json(const SweepRun& run, OrderedJson& summary) {
  const auto& depth = run.of(depth_of);
  if (depth) summary["depth"] = analyses::to_json(*depth);
}

std::vector<CsvTable> depth_tables(const SweepRun& run) {
  const auto& depth = run.of(depth_of);
  if (!depth) return {};
  return {csv_table(analyses::layers_of(*depth))};
}

}  // namespace

std::string print_depth(const runfile::DepthRun& run) {
  const std::vector<analyses::DepthAtLength> lengths = analyses::depth_by_length(run);
  const analyses::DepthAtLength& longest = lengths.back();
  return fmt::format("\nPrecision through the depth, {} tokens, {}\n", format_count(longest.tokens),
                     counted(longest.samples, "chunk")) +
         text_table(analyses::layers_of({&longest, 1})) + wrapped(analyses::last_layer_words(longest));
}

Figure depth_figure(const DepthAtLength& length) {
  Rows gains, precisions, errors;
  for (const DepthRow& row : length.layers) {
    const auto layer = static_cast<double>(row.layer);
    gains.push_back(depth_row(layer, row.gain, false));
    precisions.push_back(depth_row(layer, row.variance, true));
    if (!row.truth) continue;
    const runfile::DepthQuantiles& error = row.truth->rule_error;
    errors.push_back({layer, 100 * error[runfile::depth_median], 100 * error.front(), 100 * error.back()});
  }
  const auto layers = static_cast<double>(length.layers.size());
  precisions.push_back(depth_row(layers, length.last, true));
  std::vector<LegendEntry> legend = {{"filter", colour::vermillion, 7, 1},
                                     {"gain-one", colour::blue, 9, 2},
                                     {"first P times 0.1 and 10", colour::grey, 0, 3}};
  PanelGrid grid{page_width, 2.1};
  grid.columns = errors.empty() ? 2 : 3;
  PanelFigure script(grid, legend);
  script.data("gains", gains).data("precisions", precisions).data("errors", errors);
  script.line("unset key").line("set xlabel 'layer' offset 0,0.5").line("set xrange [-0.5:{}]", layers + 0.5);
  script.line("set xtics {} nomirror", layers > 16 ? 6 : layers > 8 ? 2 : 1).line("set yrange [0:1.05]");
  script.panel(0, "{/:Italic K} = {/:Italic P} / ({/:Italic P} + {/:Italic O})");
  script.line("plot {}", both_readings("gains"));
  script.line("set logscale y").line("set yrange [*:*]").line("set format y '10^{{%T}}'");
  script.panel(1, "precision λ of the stream").line("plot {}", both_readings("precisions"));
  script.line("unset logscale y").line("set format y '%g'");
  if (!errors.empty()) {
    script.panel(2, "diagonal rule: error in %");
    script.line(
        "plot 0 with lines linewidth 0.7 linecolor rgb '{0}' notitle, $errors using 1:3:(0):($4-$3) with vectors "
        "nohead "
        "linewidth 1.2 linecolor rgb '{1}' notitle, $errors using 1:2 with points pointtype 7 pointsize 0.5 linecolor "
        "rgb '{1}' notitle",
        colour::grey, colour::green);
  }
  return script.figure("depth");
}

const Section<SweepRun> depth_section = {
    .name = "depth",
    .title = "Precision through the depth",
    .question = "Which precision has the stream, if it is carried from layer to layer?",
    .files = {"depth", "depth-layers"},
    .keys = {"depth"},
    .blocks = depth_blocks,
    .add_json = add_depth_json,
    .tables = depth_tables};

}  // namespace gainlens::reports
