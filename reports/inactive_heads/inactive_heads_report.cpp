#include "reports/inactive_heads/inactive_heads_report.h"

#include "analyses/statistics.h"
#include "core/counted.h"
#include "reports/figures/palette.h"
#include "reports/figures/plot_script.h"
#include "reports/page/page_style.h"
#include "reports/page/table.h"
#include "reports/page/typography.h"
#include "reports/section.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace gainlens::reports {
namespace {

using analyses::InactiveHeads;

/// What the report is about.
struct ReadInactiveHeads {
  const InactiveHeads* result;
  std::string of;

  std::string label() const { return "inactive-heads"; }
};
using ReadHeads = std::span<const ReadInactiveHeads>;

Caption inactive_caption(const InactiveHeads& result) {
  return {fmt::format("Change of the loss where the heads that a score calls inactive are set to zero together, mean "
                      "over {}: the score that costs least of the literature, that of the filter, and the mean of {}.",
                      counted(result.documents, "document"), counted(result.area_of_draw.size(), "random order")),
          "It shows how many heads the model can do without on this text, if they are chosen well.",
          "Both scores were chosen by these documents. A head that this text does not need may be needed elsewhere."};
}

std::vector<Block> inactive_blocks(ReadHeads read) {
  const InactiveHeads& result = *read.front().result;
  return {list(best_scores(result)),
          CaptionedFigure{"inactive-heads", "Loss by share of heads", inactive_caption(result),
                          inactive_heads_figure(result)},
          paper_table(scores_of(result)), paper_table(ties_of(result.curves)),
          Html{fact_items(inactive_heads_facts(result, read.front().of))}};
}

void add_inactive_json(const ReadInactiveHeads& read, OrderedJson& summary) {
  summary["inactive_heads"] = analyses::to_json(*read.result);
}

std::vector<CsvTable> inactive_tables(const ReadInactiveHeads& read) {
  return {csv_table(scores_of(*read.result)), csv_table(ties_of(read.result->curves))};
}

const Section<ReadInactiveHeads> inactive_heads_section = {
    .name = "inactive-heads",
    .title = "Inactive heads",
    .question = "Which score finds the heads that nothing needs?",
    .files = {"inactive-heads", "inactive-heads-ties"},
    .keys = {"inactive_heads"},
    .blocks = inactive_blocks,
    .add_json = add_inactive_json,
    .tables = inactive_tables};

}  // namespace

std::vector<Fact> inactive_heads_facts(const analyses::InactiveHeads& result, const std::string& of) {
  return {{"measured", fmt::format("{}; {}, {}", of, counted(result.heads, "head"),
                                   counted(result.area_of_draw.size(), "random order"))},
          {"random", fmt::format("mean of the orders: {:+.4f} to {:+.4f}, median {:+.4f}", result.area_of_draw.front(),
                                 result.area_of_draw.back(), analyses::median(result.area_of_draw))}};
}

std::vector<std::string> best_scores(const analyses::InactiveHeads& result) {
  if (result.best_filter.empty()) return {};
  const auto& interval = result.filter_interval;
  const bool better = interval && interval->high < 0, worse = interval && interval->low > 0;
  return {fmt::format("best of the filter, {}, less best of the literature, {}: {:+.4f} {}", result.best_filter,
                      result.best_literature, result.filter_minus_literature,
                      interval ? fmt::format("[{:+.4f}, {:+.4f}]", interval->low, interval->high) : "–"),
          fmt::format("the best of the filter is {} the best of the literature (both are chosen by these documents)",
                      better  ? "better than"
                      : worse ? "worse than"
                              : "not shown to differ from")};
}

std::string print_inactive_heads(const analyses::InactiveHeads& result, const std::string& of) {
  constexpr std::size_t label_width = 10;
  std::string text = fact_lines(inactive_heads_facts(result, of), label_width) + "\n" + text_table(scores_of(result));
  if (const Table ties = ties_of(result.curves); !ties.rows.empty()) text += "\n" + text_table(ties);
  const std::vector<std::string> best = best_scores(result);
  if (!best.empty()) text += "\n";
  for (const std::string& sentence : best) text += sentence + "\n";
  return text;
}

Figure inactive_heads_figure(const InactiveHeads& result) {
  PlotScript script;
  std::string plot;
  const auto draw = [&](const char* block, const std::string& title, const std::vector<double>& changes,
                        std::string_view colour, int dash) {
    std::vector<std::vector<double>> rows = {{0, 0}};
    for (std::size_t i = 0; i < changes.size(); ++i) rows.push_back({100 * result.shares[i], changes[i]});
    script.data(block, rows);
    plot += fmt::format("{}${} with linespoints lw 1.5 pt 7 ps 0.6 dt {} lc rgb '{}' title \"{}\"",
                        plot.empty() ? "plot " : ", ", block, dash, colour, plain(title));
  };
  for (const auto& [block, name, colour] : {std::tuple{"literature", &result.best_literature, colour::blue},
                                            std::tuple{"filter", &result.best_filter, colour::vermillion}}) {
    const auto curve = std::ranges::find(result.curves, *name, &analyses::ScoreCurve::name);
    if (curve != result.curves.end()) draw(block, fmt::format("{} ({})", *name, block), curve->changes, colour, 1);
  }
  draw("random", "random heads", result.random_changes, colour::grey, 2);
  script.value_axis(0, 100 * result.shares.back());
  script.line("set xlabel 'heads set to zero (%)'").line("set ylabel 'change of the loss, nats per token'");
  script.line("set key below").line("{}", plot);
  return {"inactive-heads", column_width, 2.7, script.text()};
}

WrittenReport write_inactive_heads_report(const InactiveHeads& result, const std::string& of,
                                          const std::filesystem::path& out) {
  const ReadInactiveHeads read[] = {{&result, of}};
  const Section<ReadInactiveHeads>* const sections[] = {&inactive_heads_section};
  MadeReport report = make_report<ReadInactiveHeads>(sections, read);
  report.title = page_title("inactive heads", of);
  report.header =
      "<header>\n<h1>Which score finds the heads that nothing needs?</h1>\n<p class=\"lead\">The heads that each score "
      "calls inactive are set to zero together, beside as many random ones.</p>\n</header>\n";
  return write_files(report, out);
}

}  // namespace gainlens::reports
