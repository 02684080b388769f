#include "analyses/gain_decisions.h"
#include "reports/recommend/forest_figure.h"
#include "reports/recommend/paper_numbers.h"
#include "reports/recommend/sections.h"

#include "core/counted.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

namespace gainlens::reports {
namespace {

using analyses::GainDecision;
using analyses::MetricGain;

PaperTable decisions_table(Comparisons comparisons) {
  const auto& decisions = comparisons.front().shared->decisions;
  const auto tested = std::count_if(decisions.begin(), decisions.end(), [](const auto& row) { return bool(row.p); });
  PaperTable table{
      "decisions",
      "Who is better, and how sure. Δ is the relative change of the mean on the test items. Its interval and "
      "p count other seeds and other users: this p decides, at 5%. ",
      {{"metric", true}, {"Δ"}, {interval_heading(comparisons)}, {"p"}, {"Holm's p"}, {"naive p"}, {"decision", true}},
      {},
      {{"", 1}, {"seeds and users", 4}, {"seeds alone", 1}, {"", 1}}};
  if (tested > 1) table.caption += fmt::format("Holm's p is corrected for the {} rows that have a p. ", tested);
  table.caption +=
      "The naive p is the paired t over seeds, which takes the users as fixed. \"not shown\" does not say that there "
      "is no difference.";
  for (const ComparedArms& arms : comparisons) {
    table.rows.push_back({fmt::format("{}, {}", arms.title, counted(arms.comparison.baseline_seeds.size(), "seed"))});
    for (const GainDecision& row : arms.decisions()) {
      const MetricGain& gain = arms.comparison.metrics[row.metric];
      table.rows.push_back({gain.metric.title(), change_of_log(gain.log_ratio), change_interval(gain.log_ratio),
                            p_number(row.p), p_number(row.holm), p_number(gain.seeds.naive_p), row.in_words()});
    }
  }
  return table;
}

/// "bft against plain on Beauty (SASRec) in HR@10 and MRR" for the rows that a test keeps; empty if it keeps none.
std::string rows_in_words(Comparisons comparisons, const std::function<bool(const GainDecision&)>& keeps) {
  std::vector<std::string> all;
  for (const ComparedArms& arms : comparisons) {
    std::vector<std::string> metrics;
    for (const GainDecision& row : arms.decisions()) {
      if (keeps(row)) metrics.push_back(arms.comparison.metrics[row.metric].metric.title());
    }
    if (!metrics.empty()) all.push_back(fmt::format("{} in {}", arms.title, fmt::join(metrics, ", ")));
  }
  return fmt::format("{}", fmt::join(all, "; "));
}

/// Who wins, in a few sentences.
std::string answer(Comparisons comparisons) {
  using analyses::Decision;
  const auto corrected = [](const GainDecision& row) { return row.holm && *row.holm <= analyses::decision_level; };
  const auto is = [](Decision decision) { return [=](const GainDecision& row) { return row.decision == decision; }; };
  const auto with_holm = [&](Decision decision) {
    return rows_in_words(comparisons, [&](const GainDecision& row) { return is(decision)(row) && corrected(row); });
  };
  const auto without_holm = [&](Decision decision) {
    return rows_in_words(comparisons, [&](const GainDecision& row) { return is(decision)(row) && !corrected(row); });
  };
  if (rows_in_words(comparisons, [](const GainDecision& row) { return bool(row.p); }).empty())
    return "Nothing is decided: no row has a p, and the table says why.";
  std::string text;
  const auto add = [&](const std::string& found, std::string_view what) {
    if (!found.empty()) text += fmt::format("{}{}: {}.", text.empty() ? "" : " ", what, found);
  };
  add(with_holm(Decision::better), "Better, also after Holm's correction");
  if (text.empty()) text = "No candidate is shown to be better after Holm's correction.";
  add(with_holm(Decision::worse), "Worse, also after Holm's correction");
  add(without_holm(Decision::better), "Better at 5% without the correction alone");
  add(without_holm(Decision::worse), "Worse at 5% without the correction alone");
  return text;
}

/// What the numbers of seeds mean, each sentence once.
std::vector<std::string> notes_of(Comparisons comparisons) {
  std::vector<std::string> notes;
  std::set<std::size_t> seen;
  for (const ComparedArms& arms : comparisons) {
    const std::size_t seeds = arms.comparison.baseline_seeds.size();
    if (!seen.insert(seeds).second) continue;
    if (seeds == 1) {
      notes.emplace_back(
          "With one seed nothing is known of other trainings. The intervals marked \"users alone\" are 95% intervals "
          "over other users of this kind.");
    } else if (seeds < analyses::fewest_crossed_seeds) {
      notes.emplace_back(
          "With two seeds there is a range without a level, marked \"range\". A 95% interval and a p need a third "
          "seed.");
    } else if (const std::string note = analyses::small_p_note(seeds); !note.empty()) {
      notes.push_back(note + ".");
      notes.back().front() = static_cast<char>(std::toupper(static_cast<unsigned char>(notes.back().front())));
    }
  }
  return notes;
}

std::vector<Block> blocks(Comparisons comparisons) {
  std::vector<Block> all = {paragraph(answer(comparisons)), decisions_table(comparisons)};
  for (const std::string& note : notes_of(comparisons)) all.push_back(paragraph(note));
  const Caption caption = {
      forest_in_words(comparisons),
      "It shows which changes are larger than what other seeds and other users would bring about.",
      "An interval that holds 0 does not show that two arms are equally good. The intervals of two candidates may "
      "overlap although the candidates differ: compare these two arms themselves."};
  all.emplace_back(
      CaptionedFigure{"forest", "Gains with their intervals", caption, forest_figure(comparisons, "forest")});
  return all;
}

void add_json(const ComparedArms& arms, OrderedJson& summary) {
  summary["decisions"] = OrderedJson::object();
  for (const GainDecision& row : arms.decisions())
    summary["decisions"][arms.comparison.metrics[row.metric].metric.name()] = to_json(row);
}

const char* kind_of(const analyses::Maybe<analyses::CrossedEstimate>& estimate) {
  if (!estimate) return "";
  return estimate->interval ? "95%, seeds and users" : estimate->range ? "range without a level" : "95%, users alone";
}

/// The numbers of the table and of the figure. Changes are shares of the baseline.
CsvTable csv_of(Comparisons comparisons) {
  CsvTable table{"decisions",
                 {"data_set", "backbone", "baseline", "candidate", "seeds", "users", "split", "metric",
                  "relative_difference", "low", "high", "interval", "p", "p_holm", "paired_t_naive_p",
                  "paired_t_naive_low", "paired_t_naive_high", "decision"},
                 {}};
  for (const ComparedArms& arms : comparisons) {
    const analyses::ArmComparison& c = arms.comparison;
    for (const GainDecision& row : arms.decisions()) {
      const MetricGain& gain = c.metrics[row.metric];
      const auto& estimate = gain.log_ratio;
      std::vector<Cell> cells = {c.data_set,
                                 c.backbone,
                                 c.baseline,
                                 c.candidate,
                                 cell(c.baseline_seeds.size()),
                                 cell(c.users),
                                 c.split,
                                 gain.metric.name(),
                                 estimate ? Cell(std::expm1(estimate->value)) : empty_cell()};
      append(cells, change_ends(estimate));
      cells.emplace_back(std::string(kind_of(estimate)));
      for (const analyses::Measured& p : {row.p, row.holm, gain.seeds.naive_p}) cells.push_back(cell(p));
      append(cells, naive_relative_interval(gain.seeds));
      cells.emplace_back(row.in_words());
      table.rows.push_back(std::move(cells));
    }
  }
  return table;
}

std::vector<CsvTable> tables(const ComparedArms& arms) {
  return {csv_of({&arms, 1})};
}

std::vector<CsvTable> common_tables(Comparisons comparisons) {
  return {csv_of(comparisons)};
}

std::vector<std::string> files() {
  return {"decisions", "forest"};
}

}  // namespace

const Section<ComparedArms>& decisions_section() {
  static const Section<ComparedArms> section = {.name = "decisions",
                                                .title = "Who is better",
                                                .question = "Which arm is better, by how much, and how sure is it?",
                                                .files = files,
                                                .keys = {"decisions"},
                                                .blocks = blocks,
                                                .add_json = add_json,
                                                .tables = tables,
                                                .common_tables = common_tables};
  return section;
}

}  // namespace gainlens::reports
