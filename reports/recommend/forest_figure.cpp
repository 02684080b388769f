#include "reports/recommend/forest_figure.h"

#include "reports/comparison/forest.h"
#include "reports/recommend/paper_numbers.h"

#include <cmath>
#include <set>
#include <vector>

namespace gainlens::reports {
namespace {

using analyses::MetricGain;

Maybe<ForestRow> row_of(const ComparedArms& arms, const MetricGain& gain) {
  Maybe<Interval> naive = naive_relative_interval(gain.seeds);
  if (naive) naive = Interval{100 * naive->low, 100 * naive->high};
  return forest_row(arms.candidate_style, gain.log_ratio, naive,
                    [](double log_ratio) { return 100 * std::expm1(log_ratio); });
}

/// Relative changes in percent.
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

}  // namespace

Maybe<Figure> forest_figure(Comparisons comparisons, const std::string& name) {
  return forest_figure(forest_of(comparisons), name);
}

std::string forest_in_words(Comparisons comparisons) {
  return fmt::format("The relative change of each metric against {}. {}", baseline_of(comparisons),
                     forest_lines_in_words(forest_of(comparisons)));
}

}  // namespace gainlens::reports
