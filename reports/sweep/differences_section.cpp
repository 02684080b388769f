#include "reports/sweep/sections.h"

#include "analyses/comparison.h"
#include "core/check.h"
#include "core/quantity.h"
#include "reports/page/typography.h"
#include "reports/sweep/run_words.h"
#include "reports/words/numbers.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>

namespace gainlens::reports {
namespace {

/// All but the first, which the others are compared with.
Runs later(Runs runs) {
  return runs.subspan(1);
}

CsvTable differences_csv(Runs runs) {
  CsvTable table{"differences",
                 {"first", "second", "tokens", "quantity", "unit", "first_mean", "second_mean", "difference", "low",
                  "high", "pairs"},
                 {}};
  for (const SweepRun& run : later(runs)) {
    const analyses::Comparison& comparison = run.of(comparison_with_first);
    for (const analyses::ComparedLength& length : comparison.lengths) {
      for (const analyses::PairedDifference& quantity : length.quantities) {
        std::vector<Cell> row = {runs.front().label(),
                                 run.label(),
                                 length.tokens,
                                 std::string(quantity.quantity.name),
                                 std::string(quantity.quantity.unit),
                                 cell(quantity.first),
                                 cell(quantity.second),
                                 cell(quantity.difference)};
        append(row, quantity.interval);
        row.push_back(cell(quantity.pairs));
        table.rows.push_back(std::move(row));
      }
    }
  }
  return table;
}

/// Head by head, where the runs have the same layers and heads.
CsvTable head_differences_csv(Runs runs) {
  CsvTable table{"head-differences", {"first", "second", "tokens", "layer", "head"}, {}};
  for (const std::string_view quantity : analyses::compared_head_quantities) {
    for (const char* column : {"first", "second", "difference", "low", "high"})
      table.header.push_back(fmt::format("{}_{}", quantity, column));
  }
  table.header.emplace_back("pairs");
  for (const SweepRun& run : later(runs)) {
    for (const analyses::HeadDifference& head : run.of(comparison_with_first).heads) {
      std::vector<Cell> row = {runs.front().label(), run.label(), head.tokens, head.layer, head.head};
      for (const analyses::PairedDifference& compared : head.quantities) {
        row.push_back(cell(compared.first));
        row.push_back(cell(compared.second));
        row.push_back(cell(compared.difference));
        append(row, compared.interval);
      }
      row.push_back(cell(head.quantities.front().pairs));
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

/// A quantity's name for readers, with its unit.
std::string heading_of(const analyses::ComparedQuantity& quantity) {
  return quantity.unit == "1" ? std::string(quantity.label) : fmt::format("{} ({})", quantity.label, quantity.unit);
}

std::string signed_digits(const Measured& value) {
  return value ? (*value > 0 ? "+" : "") + shown(*value) : "–";
}

PaperTable differences_table(const SweepRun& run) {
  const analyses::Comparison& comparison = run.of(comparison_with_first);
  const std::string &first = run.first()->label(), &second = run.label();
  PaperTable table{
      "differences", "", {{"quantity", true}, {first}, {second}, {"difference"}, {"95% interval"}, {"chunks"}}, {}};
  table.caption = fmt::format(
      "{} less {}{} Intervals are Student's over chunks; they do not cover training seeds. Quantities of attention are "
      "means over the deep layers' last-quarter queries; BOS mass over second-half queries of the layers that see key "
      "0.{}",
      second, first,
      comparison.unpaired.empty() ? ", paired by chunk." : ": no difference is taken, since " + comparison.unpaired,
      comparison.shared_layers.empty()
          ? std::string()
          : fmt::format(" Only what both runs measured is compared: {}; deep layers are the last ones of these.",
                        layers_in_words(comparison.shared_layers)));
  for (const analyses::ComparedLength& length : comparison.lengths) {
    table.rows.push_back({format_count(length.tokens) + " tokens"});
    for (const analyses::PairedDifference& quantity : length.quantities) {
      if (!quantity.first && !quantity.second) continue;
      table.rows.push_back({heading_of(quantity.quantity), shown(quantity.first), shown(quantity.second),
                            signed_digits(quantity.difference), quantity.interval ? shown(quantity.interval) : "–",
                            quantity.pairs > 0 ? std::to_string(quantity.pairs) : "–"});
    }
  }
  return table;
}

/// The heads in which the two runs differ most, at the longest length that both have.
PaperTable changed_heads_table(const SweepRun& run) {
  constexpr std::size_t most = 5;
  const analyses::Comparison& comparison = run.of(comparison_with_first);
  const std::string &first = run.first()->label(), &second = run.label();
  PaperTable table{"changed-heads", "", {{"head"}, {first}, {second}, {"difference"}, {"95% interval"}}, {}};
  if (comparison.heads.empty()) return table;
  const std::int64_t longest = std::ranges::max(comparison.heads, {}, &analyses::HeadDifference::tokens).tokens;
  std::size_t compared = 0;
  for (const analyses::HeadDifference& head : comparison.heads) compared += head.tokens == longest ? 1 : 0;
  for (std::size_t i = 0; i < analyses::compared_head_quantities.size(); ++i) {
    std::vector<const analyses::HeadDifference*> order;
    for (const analyses::HeadDifference& head : comparison.heads) {
      const Measured& difference = head.quantities[i].difference;
      if (head.tokens == longest && difference && *difference != 0) order.push_back(&head);
    }
    if (order.empty()) continue;
    std::ranges::stable_sort(order, std::greater{},
                             [i](const auto* head) { return std::abs(*head->quantities[i].difference); });
    table.rows.push_back({heading_of(order.front()->quantities[i].quantity)});
    for (std::size_t rank = 0; rank < std::min(most, order.size()); ++rank) {
      const analyses::PairedDifference& one = order[rank]->quantities[i];
      table.rows.push_back({fmt::format("{}.{}", order[rank]->layer, order[rank]->head), shown(one.first),
                            shown(one.second), signed_digits(one.difference),
                            one.interval ? shown(one.interval) : "–"});
    }
  }
  table.caption = fmt::format(
      "The heads (layer.head) that differ most between {} and {} at {} tokens: of {} heads the {} with the largest "
      "difference of each quantity. They are chosen by these chunks, so that their differences are too large and their "
      "intervals too short. head-differences.csv has all heads.",
      first, second, format_count(longest), compared, most);
  return table;
}

PaperTable run_differences_table(const SweepRun& run) {
  const std::string &first = run.first()->label(), &second = run.label();
  PaperTable table{"run-differences",
                   fmt::format("What {} and {} do not share, and what follows.", first, second),
                   {{"", true}, {first, true}, {second, true}, {"consequence", true}},
                   {}};
  for (const analyses::RunDifference& difference : run.of(comparison_with_first).differences)
    table.rows.push_back({std::string(difference.what), difference.first, difference.second,
                          difference.consequence.empty() ? "–" : difference.consequence});
  return table;
}

std::string listed(const std::vector<std::int64_t>& lengths) {
  std::string text;
  for (const std::int64_t tokens : lengths) text += (text.empty() ? "" : ", ") + format_count(tokens);
  return text;
}

/// "differences" of the second run, "differences-3" of the third.
PaperTable numbered(PaperTable table, std::size_t run) {
  if (run > 1) table.name += fmt::format("-{}", run + 1);
  return table;
}

void add_blocks(std::vector<Block>& all, const SweepRun& run, std::size_t number) {
  const std::string first = escape_html(run.first()->label()), second = escape_html(run.label());
  const analyses::Comparison& comparison = run.of(comparison_with_first);
  all.push_back(numbered(run_differences_table(run), number));
  if (!comparison.refused.empty()) {
    all.push_back(Html{fmt::format("<p class=\"absent\">{} against {}: no numbers are compared: {}.</p>\n", second,
                                   first, escape_html(comparison.refused))});
    return;
  }
  all.push_back(numbered(differences_table(run), number));
  all.push_back(numbered(changed_heads_table(run), number));
  if (comparison.lengths.empty())
    all.push_back(
        Html{fmt::format("<p class=\"absent\">{} and {} have no context length in common.</p>\n", first, second)});
  if (!comparison.only_first.empty())
    all.push_back(
        paragraph(fmt::format("Only in {}: {} tokens.", run.first()->label(), listed(comparison.only_first))));
  if (!comparison.only_second.empty())
    all.push_back(paragraph(fmt::format("Only in {}: {} tokens.", run.label(), listed(comparison.only_second))));
  all.push_back(list(comparison.caveats));
}

std::vector<Block> differences_blocks(Runs runs) {
  std::vector<Block> all;
  for (std::size_t i = 1; i < runs.size(); ++i) add_blocks(all, runs[i], i);
  return all;
}

void add_common_differences_json(Runs runs, OrderedJson& summary) {
  summary["comparisons"] = OrderedJson::array();
  for (const SweepRun& run : later(runs)) {
    OrderedJson entry = {{"first", run.first()->label()}, {"second", run.label()}};
    entry.update(to_json(run.of(comparison_with_first)));
    summary["comparisons"].push_back(std::move(entry));
  }
}

}  // namespace

analyses::Comparison comparison_with_first(const SweepRun& run) {
  ASSERT(run.first() != nullptr, "the first run of a report is compared with no other");
  return analyses::compare(run.first()->reader(), run.reader(), run.options());
}

const Section<SweepRun> differences_section = {
    .name = "differences",
    .title = "Differences between the runs",
    .question = "How do two runs differ, chunk by chunk?",
    .files = {"differences", "run-differences", "head-differences", "changed-heads"},
    .keys = {"comparisons"},
    .blocks = differences_blocks,
    .add_common_json = add_common_differences_json,
    .common_tables = [](Runs runs) {
      return std::vector<CsvTable>{differences_csv(runs), head_differences_csv(runs)};
    }};

}  // namespace gainlens::reports
