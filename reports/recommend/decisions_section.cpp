#include "analyses/gain_decisions.h"
#include "core/counted.h"
#include "reports/comparison/decided_changes.h"
#include "reports/comparison/forest.h"
#include "reports/recommend/compared_arms.h"
#include "reports/recommend/paper_numbers.h"
#include "reports/words/compare_words.h"

#include <cmath>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace gainlens::reports {
namespace {

using analyses::GainDecision;
using analyses::MetricGain;

Maybe<ForestRow> row_of(const ComparedArms& arms, const MetricGain& gain) {
  Maybe<Interval> naive = naive_relative_interval(gain.seeds);
  if (naive) naive = Interval{100 * naive->low, 100 * naive->high};
  return forest_row(arms.candidate_style, gain.log_ratio, naive,
                    [](double log_ratio) { return 100 * std::expm1(log_ratio); });
}

/// The relative change of every metric in percent.
Forest forest_of(Comparisons comparisons) {
  std::vector<std::pair<std::string, std::string>> compared;
  std::set<std::string> splits;
  for (const ComparedArms& arms : comparisons) {
    compared.emplace_back(arms.comparison.candidate, printable(arms.comparison.data_set, 60));
    splits.insert(arms.comparison.split);
  }
  Forest forest{.groups = {},
                .names = forest_names(compared, splits.size()),
                .rows = {},
                .axis = fmt::format("change against {} (%)", baseline_of(comparisons)),
                .unit = "user",
                .number = [](double percent) { return change_number(percent / 100); }};
  const std::size_t metrics = comparisons.front().comparison.metrics.size();
  for (std::size_t metric = 0; metric < metrics; ++metric) {
    forest.groups.push_back(comparisons.front().comparison.metrics[metric].metric.title());
    auto& group = forest.rows.emplace_back();
    for (const ComparedArms& arms : comparisons) group.push_back(row_of(arms, arms.comparison.metrics[metric]));
  }
  return forest;
}

std::vector<DecidedChange> decided(Comparisons comparisons) {
  std::vector<DecidedChange> changes;
  for (const ComparedArms& arms : comparisons) {
    for (const GainDecision& row : arms.decisions())
      changes.push_back({arms.title, arms.comparison.metrics[row.metric].metric.title(), row});
  }
  return changes;
}

PaperTable decisions_table(Comparisons comparisons, std::span<const DecidedChange> changes) {
  PaperTable table{"decisions",
                   "Who is better, and how sure. Δ is the relative change of the mean on the test items. Its interval "
                   "and p count other seeds and other users: this p decides, at 5%. " +
                       decisions_in_words(changes, "users"),
                   {{"metric", true},
                    {"Δ"},
                    {interval_heading(seed_counts(comparisons))},
                    {"p"},
                    {"Holm's p"},
                    {"naive p"},
                    {"decision", true}},
                   {},
                   {{"", 1}, {"seeds and users", 4}, {"seeds alone", 1}, {"", 1}}};
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

std::vector<Block> decisions_blocks(Comparisons comparisons) {
  const std::vector<DecidedChange> changes = decided(comparisons);
  std::vector<Block> all = {paragraph(answer_in_words(changes)), decisions_table(comparisons, changes)};
  for (const std::string& note : notes_on_few_seeds(seed_counts(comparisons), "user")) all.push_back(paragraph(note));
  for (const ComparedArms& arms : comparisons) {
    const std::string far = compare_words::far_seeds(arms.comparison.metrics, arms.comparison.candidate_seeds,
                                                     [](const MetricGain& gain) { return gain.metric.title(); });
    if (!far.empty()) all.push_back(paragraph(arms.title + ": " + far));
  }
  const Forest forest = forest_of(comparisons);
  const Caption caption = {fmt::format("The relative change of each metric against {}. {}", baseline_of(comparisons),
                                       forest_lines_in_words(forest)),
                           "It shows which changes are larger than what other seeds and other users would bring about.",
                           forest_cannot};
  all.emplace_back(CaptionedFigure{"forest", "Gains with their intervals", caption, forest_figure(forest, "forest")});
  return all;
}

void add_decisions_json(const ComparedArms& arms, OrderedJson& summary) {
  summary["decisions"] = OrderedJson::object();
  for (const GainDecision& row : arms.decisions())
    summary["decisions"][arms.comparison.metrics[row.metric].metric.name()] = to_json(row);
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
      cells.emplace_back(interval_kind(estimate));
      for (const Measured& p : {row.p, row.holm, gain.seeds.naive_p}) cells.push_back(cell(p));
      append(cells, naive_relative_interval(gain.seeds));
      cells.emplace_back(row.in_words());
      table.rows.push_back(std::move(cells));
    }
  }
  return table;
}

}  // namespace

const Section<ComparedArms> decisions_section = {
    .name = "decisions",
    .title = "Who is better",
    .question = "Which arm is better, by how much, and how sure is it?",
    .files = {"decisions", "forest"},
    .keys = {"decisions"},
    .blocks = decisions_blocks,
    .add_json = add_decisions_json,
    .tables =
        [](const ComparedArms& arms) {
          return std::vector<CsvTable>{csv_of({&arms, 1})};
        },
    .common_tables = [](Comparisons comparisons) { return std::vector<CsvTable>{csv_of(comparisons)}; }};

}  // namespace gainlens::reports
