#include "reports/recommend/paper_numbers.h"
#include "reports/recommend/sections.h"
#include "reports/words/numbers.h"

#include "core/number_ranges.h"

#include <algorithm>
#include <tuple>

namespace gainlens::reports {
namespace {

using analyses::ArmComparison;
using analyses::MetricGain;
using analyses::PaperGain;

/// Comparisons of the same two arms of one backbone: the rows of one table.
std::vector<std::vector<const ArmComparison*>> grouped(Comparisons comparisons) {
  std::vector<std::vector<const ArmComparison*>> groups;
  const auto key = [](const ArmComparison& c) { return std::tie(c.backbone, c.baseline_arm, c.candidate_arm); };
  for (const ComparedArms& arms : comparisons) {
    const auto found = std::find_if(groups.begin(), groups.end(),
                                    [&](const auto& group) { return key(*group.front()) == key(arms.comparison); });
    (found == groups.end() ? groups.emplace_back() : *found).push_back(&arms.comparison);
  }
  return groups;
}

std::vector<std::string> measured_row(const ArmComparison& comparison) {
  std::vector<std::string> row = {comparison.data_set};
  for (const MetricGain& gain : comparison.metrics) {
    row.push_back(metric_number(gain.seeds.baseline));
    row.push_back(metric_number(gain.seeds.candidate));
    row.push_back(change_number(gain.seeds.relative));
    row.push_back(p_number(gain.seeds.naive_p));
  }
  return row;
}

/// What the paper prints; empty if it prints nothing of this data set and backbone.
std::vector<std::string> paper_row(const ArmComparison& comparison) {
  std::vector<std::string> row;
  bool any = false;
  for (const MetricGain& gain : comparison.metrics) {
    const PaperGain* const paper = analyses::paper_gain(comparison, gain.metric);
    if (paper == nullptr) {
      row.insert(row.end(), 4, "–");
      continue;
    }
    any = true;
    row.push_back(metric_number(paper->baseline, paper->baseline_deviation));
    row.push_back(metric_number(paper->candidate, paper->candidate_deviation));
    row.push_back(change_number(paper->relative));
    row.emplace_back(paper->p);
  }
  if (!any) return {};
  row.insert(row.begin(), "paper");
  return row;
}

PaperTable paper_shape(const std::vector<const ArmComparison*>& group, std::size_t number) {
  const ArmComparison& first = *group.front();
  PaperTable table{numbered_stem("comparison", number), "", {{"data set", true}}, {}, {{"", 1}}};
  table.caption = fmt::format(
      "{}: {} against {}. Mean (standard deviation) over seeds on the test items; Δ is the relative change, p the "
      "paired t over seeds, which takes the users as fixed. Rows called paper: bft.tex, 20 seeds, base against BFT.",
      first.backbone, first.candidate_arm, first.baseline_arm);
  for (const MetricGain& gain : first.metrics) {
    table.spans.push_back({gain.metric.name(), 4});
    for (const std::string& heading : {first.baseline_arm, first.candidate_arm, std::string("Δ"), std::string("p")})
      table.columns.push_back({heading});
  }
  for (const ArmComparison* comparison : group) {
    table.rows.push_back(measured_row(*comparison));
    if (auto row = paper_row(*comparison); !row.empty()) table.rows.push_back(std::move(row));
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
      "Gains with their errors over seeds and users. Users with one target item count as one unit, because "
      "a model that has learned an item gains on all of them. \"r\" is the correlation of the two arms over "
      "seeds. The bootstrap draws seeds and users; below ten seeds its range has no level.",
      {{"metric", true}, {"Δ"}, {"95% interval"}, {"p"}, {"p"}, {"p"}, {"p"}, {"Δ"}, {"r"}},
      {},
      {{"", 1}, {"seeds and users", 3}, {"seeds alone", 3}, {"bootstrap", 1}, {"", 1}}};
  table.columns[4].heading = "paired t";
  table.columns[5].heading = "signed ranks";
  table.columns[6].heading = "sign flips";
  table.columns[7].heading = "range of Δ";
  for (const ComparedArms& arms : comparisons) {
    table.rows.push_back({arms.label()});
    for (const MetricGain& gain : arms.comparison.metrics)
      table.rows.push_back({gain.metric.name(), change_of_log(gain.log_ratio), change_interval(gain.log_ratio),
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

std::vector<Block> blocks(Comparisons comparisons) {
  std::vector<Block> all;
  const auto groups = grouped(comparisons);
  for (std::size_t i = 0; i < groups.size(); ++i) all.emplace_back(paper_shape(groups[i], i));
  all.emplace_back(errors_table(comparisons));
  for (const ComparedArms& arms : comparisons) {
    const ArmComparison& c = arms.comparison;
    all.push_back(paragraph(fmt::format("{}: {} users, {} items, {}, split {}.", arms.label(), c.users, c.items,
                                        seeds_in_words(c), printable(c.split, 64))));
  }
  return all;
}

void add_json(const ComparedArms& arms, OrderedJson& summary) {
  summary.update(to_json(arms.comparison));
}

std::vector<CsvTable> tables(const ComparedArms& arms) {
  CsvTable table{"comparison",
                 {"data_set",
                  "backbone",
                  "baseline",
                  "candidate",
                  "seeds",
                  "users",
                  "metric",
                  "baseline_mean",
                  "baseline_deviation",
                  "candidate_mean",
                  "candidate_deviation",
                  "relative_difference",
                  "paired_t_naive_p",
                  "sign_p",
                  "signed_rank_p",
                  "sign_flip_p",
                  "difference",
                  "difference_low",
                  "difference_high",
                  "difference_p",
                  "log_ratio",
                  "log_ratio_low",
                  "log_ratio_high",
                  "log_ratio_p",
                  "paper_baseline",
                  "paper_candidate",
                  "paper_relative_difference"},
                 {}};
  const ArmComparison& c = arms.comparison;
  for (const MetricGain& gain : c.metrics) {
    std::vector<Cell> row = {c.data_set,    c.backbone,        c.baseline, c.candidate, cell(c.baseline_seeds.size()),
                             cell(c.users), gain.metric.name()};
    for (const analyses::ArmSummary& arm : {gain.seeds.baseline, gain.seeds.candidate}) {
      row.emplace_back(arm.mean);
      row.push_back(cell(arm.deviation));
    }
    for (const analyses::Measured& value :
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

std::vector<std::string> files() {
  return {"comparison", "gains"};
}

}  // namespace

const Section<ComparedArms>& gains_section() {
  static const Section<ComparedArms> section = {.name = "gains",
                                                .title = "Gains",
                                                .question = "By how much does an arm differ from its baseline?",
                                                .files = files,
                                                .keys = {"metrics"},
                                                .blocks = blocks,
                                                .add_json = add_json,
                                                .tables = tables};
  return section;
}

}  // namespace gainlens::reports
