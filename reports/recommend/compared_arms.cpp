#include "reports/recommend/compared_arms.h"

#include "reports/comparison/decided_changes.h"
#include "reports/recommend/paper_numbers.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

namespace gainlens::reports {
namespace {

using analyses::ArmComparison;

/// The place of a name, which is added if it is new.
std::size_t place_of(std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) names.push_back(name);
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

}  // namespace

std::vector<ComparedArms> compared_arms(std::span<const ArmComparison> comparisons,
                                        std::vector<analyses::PooledComparison> pooled, std::vector<std::string> arms) {
  const auto shared = std::make_shared<const SharedResults>(SharedResults{std::move(pooled), decide(comparisons)});
  std::vector<ComparedArms> all;
  std::size_t first = 0;
  for (const ArmComparison& comparison : comparisons) {
    const auto same = [&](const ArmComparison& other) { return other.title() == comparison.title(); };
    const bool several = std::count_if(comparisons.begin(), comparisons.end(), same) > 1;
    const std::string split = several ? fmt::format(", split {}", printable(comparison.split, 12)) : "";
    const std::size_t baseline = place_of(arms, comparison.baseline);
    all.push_back({comparison, shared, first, several ? comparison.title_with_split() : comparison.title(),
                   shown_title(comparison) + split, baseline, place_of(arms, comparison.candidate)});
    first += comparison.metrics.size();
  }
  return all;
}

std::string baseline_of(Comparisons comparisons) {
  return common_name(comparisons, &ArmComparison::baseline, "the baseline");
}

std::vector<std::vector<const ComparedArms*>> by_split(Comparisons comparisons) {
  std::vector<std::vector<const ComparedArms*>> groups;
  for (const ComparedArms& arms : comparisons) {
    const auto found = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      return group.front()->comparison.split == arms.comparison.split;
    });
    (found == groups.end() ? groups.emplace_back() : *found).push_back(&arms);
  }
  return groups;
}

std::string paper_clause(Comparisons comparisons) {
  std::set<std::string> data_sets;
  for (const ComparedArms& arms : comparisons) {
    const auto& metrics = arms.comparison.metrics;
    if (std::any_of(metrics.begin(), metrics.end(), [&](const analyses::MetricGain& gain) {
          return analyses::paper_gain(arms.comparison, gain.metric) != nullptr;
        }))
      data_sets.insert(in_words(arms.comparison.paper));
  }
  if (data_sets.empty()) return {};
  return fmt::format(" Rows called paper: what the paper prints over 20 seeds for {}.", fmt::join(data_sets, "; for "));
}

}  // namespace gainlens::reports
