#include "reports/comparison/decided_changes.h"
#include "reports/recommend/compared_arms.h"
#include "reports/recommend/paper_numbers.h"
#include "reports/words/numbers.h"

#include "core/counted.h"
#include "core/number_ranges.h"

#include <algorithm>

namespace gainlens::reports {
namespace {

using analyses::ArmComparison, analyses::MetricGain, analyses::PaperGain;

/// What the paper prints of one metric; empty if it prints nothing.
std::vector<std::string> paper_row(const ArmComparison& comparison, const MetricGain& gain) {
  const PaperGain* const paper = analyses::paper_gain(comparison, gain.metric);
  if (paper == nullptr) return {};
  return {"paper",
          metric_number(paper->baseline, paper->baseline_deviation),
          metric_number(paper->candidate, paper->candidate_deviation),
          change_number(paper->relative),
          "–",
          "–",
          std::string(paper->p)};
}

PaperTable means_table(Comparisons comparisons) {
  PaperTable table{
      "comparison",
      "Mean (standard deviation) over seeds on the test items, and the relative change Δ. The interval and p "
      "are over seeds and users: this p decides. The naive p is the paired t over seeds, which takes the "
      "users as fixed.",
      {{"metric", true},
       {common_name(comparisons, &ArmComparison::baseline, "baseline")},
       {common_name(comparisons, &ArmComparison::candidate, "candidate")},
       {"Δ"},
       {interval_heading(seed_counts(comparisons))},
       {"p"},
       {"naive p"}},
      {},
      {{"", 4}, {"seeds and users", 2}, {"seeds alone", 1}}};
  const std::string paper = paper_clause(comparisons);
  table.caption += paper;
  if (!paper.empty()) table.caption += " The paper prints the naive p alone.";
  const auto varies = [](const analyses::ArmSummary& arm, const auto& curves) {
    return analyses::varies(arm, !curves.empty());
  };
  for (const ComparedArms& arms : comparisons) {
    table.rows.push_back({arms.title});
    const analyses::ArmComparison& both = arms.comparison;
    for (const MetricGain& gain : both.metrics) {
      table.rows.push_back({gain.metric.title(),
                            metric_number(gain.seeds.baseline, varies(gain.seeds.baseline, both.baseline_curves)),
                            metric_number(gain.seeds.candidate, varies(gain.seeds.candidate, both.candidate_curves)),
                            change_number(gain.seeds.relative), change_interval(gain.log_ratio),
                            p_number(gain.log_ratio), p_number(gain.seeds.naive_p)});
      if (auto row = paper_row(arms.comparison, gain); !row.empty()) table.rows.push_back(std::move(row));
    }
  }
  return table;
}

std::string bootstrap_range(const MetricGain& gain) {
  const auto& bootstrap = gain.bootstrap.log_ratio;
  if (!bootstrap) return "–";
  return change_interval(bootstrap->range) + (bootstrap->is_95 ? "" : " (no level)");
}

/// The same numbers with the errors that count other users too.
PaperTable errors_table(Comparisons comparisons) {
  PaperTable table{
      "gains",
      "Gains with every test. The p over seeds alone are naive: they take the users as fixed. Users with one target "
      "item count as one unit, because "
      "a model that has learned an item gains on all of them. \"r\" is the correlation of the two arms over "
      "seeds. The bootstrap draws seeds and users; below ten seeds its range has no level.",
      {{"metric", true}, {"Δ"}, {interval_heading(seed_counts(comparisons))}, {"p"}, {"p"}, {"p"}, {"p"}, {"Δ"}, {"r"}},
      {},
      {{"", 1}, {"seeds and users", 3}, {"naive: seeds alone", 3}, {"bootstrap", 1}, {"", 1}}};
  table.columns[4].heading = "paired t";
  table.columns[5].heading = "signed ranks";
  table.columns[6].heading = "sign flips";
  table.columns[7].heading = "range of Δ";
  for (const ComparedArms& arms : comparisons) {
    table.rows.push_back({arms.title});
    for (const MetricGain& gain : arms.comparison.metrics)
      table.rows.push_back({gain.metric.title(), change_of_log(gain.log_ratio), change_interval(gain.log_ratio),
                            p_number(gain.log_ratio), p_number(gain.seeds.naive_p), p_number(gain.seeds.ranks.p),
                            p_number(gain.seeds.flips.p), bootstrap_range(gain), shown(gain.seeds.correlation)});
  }
  return table;
}

std::string seeds_in_words(const ArmComparison& comparison) {
  const std::string one = number_ranges(comparison.baseline_seeds, " to ");
  if (comparison.baseline_seeds == comparison.candidate_seeds) return "seeds " + one;
  return fmt::format("seeds {} paired in order with {}", one, number_ranges(comparison.candidate_seeds, " to "));
}

/// What was compared, each sentence once.
std::vector<std::string> data_in_words(Comparisons comparisons) {
  std::vector<std::string> sentences;
  for (const ComparedArms& arms : comparisons) {
    const ArmComparison& c = arms.comparison;
    std::string sentence =
        fmt::format("{} ({}): {}, {}, {}, split {}.", printable(c.data_set, 60), backbone_title(c.backbone),
                    counted(c.users, "user"), counted(c.items, "item"), seeds_in_words(c), short_checksum(c.split));
    if (std::find(sentences.begin(), sentences.end(), sentence) == sentences.end())
      sentences.push_back(std::move(sentence));
  }
  return sentences;
}

std::vector<Block> gains_blocks(Comparisons comparisons) {
  std::vector<Block> all = {means_table(comparisons)};
  for (const std::string& sentence : data_in_words(comparisons)) all.push_back(paragraph(sentence));
  all.emplace_back(FoldStart{"Every test of these gains"});
  all.emplace_back(errors_table(comparisons));
  all.emplace_back(FoldEnd{});
  return all;
}

std::vector<CsvTable> gains_tables(const ComparedArms& arms) {
  CsvTable table{"comparison",
                 {"data_set", "backbone", "baseline", "candidate", "seeds", "users", "metric", "baseline_mean",
                  "baseline_deviation", "candidate_mean", "candidate_deviation", "relative_difference"},
                 {}};
  table.header.insert(
      table.header.end(),
      {"paired_t_naive_p", "sign_naive_p", "signed_rank_naive_p", "sign_flip_naive_p", "difference", "difference_low",
       "difference_high", "difference_p", "log_ratio", "log_ratio_low", "log_ratio_high", "log_ratio_p",
       "paper_baseline", "paper_candidate", "paper_relative_difference"});
  const ArmComparison& c = arms.comparison;
  for (const MetricGain& gain : c.metrics) {
    std::vector<Cell> row = {c.data_set,    c.backbone,        c.baseline, c.candidate, cell(c.baseline_seeds.size()),
                             cell(c.users), gain.metric.name()};
    for (const analyses::ArmSummary& arm : {gain.seeds.baseline, gain.seeds.candidate}) {
      row.emplace_back(arm.mean);
      row.push_back(cell(arm.deviation));
    }
    for (const Measured& value :
         {gain.seeds.relative, gain.seeds.naive_p, gain.seeds.signs.p, gain.seeds.ranks.p, gain.seeds.flips.p})
      row.push_back(cell(value));
    for (const auto* estimate : {&gain.difference, &gain.log_ratio}) {
      const auto interval = stated_interval(*estimate);
      row.push_back(*estimate ? Cell((*estimate)->value) : empty_cell());
      row.push_back(interval ? Cell(interval->low) : empty_cell());
      row.push_back(interval ? Cell(interval->high) : empty_cell());
      row.push_back(cell(stated_p(*estimate)));
    }
    const PaperGain* const paper = analyses::paper_gain(c, gain.metric);
    if (paper != nullptr)
      row.insert(row.end(), {paper->baseline, paper->candidate, paper->relative});
    else
      row.insert(row.end(), 3, empty_cell());
    table.rows.push_back(std::move(row));
  }
  return {table};
}

}  // namespace

const Section<ComparedArms> gains_section = {
    .name = "gains",
    .title = "Gains",
    .question = "By how much does an arm differ from its baseline?",
    .files = {"comparison", "gains"},
    .keys = {"metrics"},
    .blocks = gains_blocks,
    .add_json = [](const ComparedArms& arms, OrderedJson& json) { json.update(to_json(arms.comparison)); },
    .tables = gains_tables};

}  // namespace gainlens::reports
