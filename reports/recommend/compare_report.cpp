#include "reports/recommend/compare_report.h"

#include "core/counted.h"
#include "reports/comparison/decided_changes.h"
#include "reports/effect_explorer.h"
#include "reports/page/typography.h"
#include "reports/recommend/compared_arms.h"
#include "reports/recommend/paper_numbers.h"
#include "reports/words/numbers.h"

#include <cmath>
#include <string>
#include <vector>

namespace gainlens::reports {
namespace {

using analyses::GainDecision;
using analyses::MetricGain;

/// The row of a comparison: its candidate, with the data where there are several splits, in at most 24 bytes.
std::string row_of(const ComparedArms& arms, bool one_split) {
  const analyses::ArmComparison& c = arms.comparison;
  return printable(one_split ? c.candidate : fmt::format("{} {}", c.candidate_arm, c.data_set), 24);
}

std::vector<std::string> metrics_of(const ComparedArms& arms) {
  std::vector<std::string> titles;
  for (const MetricGain& gain : arms.comparison.metrics) titles.push_back(gain.metric.title());
  return titles;
}

std::vector<Block> blocks(Comparisons comparisons) {
  NamedEffects map;
  map.title = "relative change of the mean";
  map.axes = "arm ↓ metric →";
  map.columns = metrics_of(comparisons.front());
  const bool one_split = by_split(comparisons).size() == 1;
  for (const ComparedArms& arms : comparisons) {
    map.rows.push_back(row_of(arms, one_split));
    for (const GainDecision& row : arms.decisions()) {
      const MetricGain& gain = arms.comparison.metrics[row.metric];
      if (row.decision != analyses::Decision::better && row.decision != analyses::Decision::worse)
        map.doubtful.push_back(map.values.size());
      map.values.push_back(gain.seeds.relative ? *gain.seeds.relative : std::nan(""));
      map.cells.push_back(fmt::format(
          "{}, {}: {} {}; p {}, Holm's p {}: {}. Means {} and {}.", arms.title, gain.metric.title(),
          change_of_log(gain.log_ratio), change_interval(gain.log_ratio), p_number(row.p), p_number(row.holm),
          row.in_words(), shown(gain.seeds.baseline.mean), shown(gain.seeds.candidate.mean)));
    }
  }
  EffectExplorer explorer;
  explorer.add(map);
  return explorer.blocks("the difference is not shown, or not decidable");
}

}  // namespace

const Section<ComparedArms> compare_explorer_section = {.name = "explore",
                                                        .title = "Explore",
                                                        .question = "What are the numbers of one arm and metric?",
                                                        .blocks = blocks,
                                                        .scripted = true};

const std::vector<const Section<ComparedArms>*> compare_sections = {
    &decisions_section,       &compare_explorer_section, &gains_section,  &pooled_section,
    &learning_curves_section, &strata_section,           &reading_section};

WrittenReport write_compare_report(std::span<const analyses::ArmComparison> comparisons,
                                   const std::vector<analyses::PooledComparison>& pooled,
                                   const std::filesystem::path& out, const std::vector<std::string>& notes) {
  const std::vector<ComparedArms> arms = compared_arms(comparisons, pooled);
  std::string list;
  for (const ComparedArms& one : arms) list += (list.empty() ? "" : "; ") + escape_html(one.title);
  MadeReport report = make_report<ComparedArms>(compare_sections, arms);
  report.title = comparisons_title(comparisons);
  report.header = fmt::format(
      "<header>\n<h1>Does one arm recommend better?</h1>\n<p class=\"lead\">{} of recommenders, paired by seed: {}."
      "</p>\n{}</header>\n",
      counted(comparisons.size(), "comparison"), list, paragraphs_of(notes));
  if (!notes.empty()) report.summary["notes"] = notes;
  return write_files(report, out);
}

}  // namespace gainlens::reports
