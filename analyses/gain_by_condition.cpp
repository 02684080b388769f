#include "analyses/gain_by_condition.h"

#include "core/check.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace gainlens::analyses {

std::vector<GainByCondition> gains_by_condition(std::vector<ConditionGain> gains) {
  std::vector<ArmComparison> comparisons;
  for (ConditionGain& gain : gains) {
    CHECK(std::isfinite(gain.condition), "{}: is no condition; give a finite number", gain.condition);
    const ArmComparison &first = gains.front().comparison, &other = gain.comparison;
    CHECK(other.backbone == first.backbone,
          "condition {}: its models are {}, and those of condition {} {}; conditions "
          "have to differ in their data alone",
          gain.condition, printable(other.backbone, 60), gains.front().condition, printable(first.backbone, 60));
    gain.decisions.clear();
    comparisons.push_back(gain.comparison);
  }
  for (const GainDecision& row : decide(comparisons)) gains[row.comparison].decisions.push_back(row);
  std::vector<GainByCondition> all;
  for (ConditionGain& gain : gains) {
    const std::string &baseline = gain.comparison.baseline_arm, &candidate = gain.comparison.candidate_arm;
    auto found = std::ranges::find(all, candidate, &GainByCondition::candidate);
    if (found == all.end()) found = all.insert(all.end(), {baseline, candidate, {}});
    CHECK(found->baseline == baseline, "condition {}: {} is compared with {}, and with {} under another condition",
          gain.condition, printable(candidate, 60), printable(baseline, 60), printable(found->baseline, 60));
    CHECK(std::ranges::count(found->points, gain.condition, &ConditionGain::condition) == 0,
          "condition {}: stands twice for {}; each condition needs a number of its own", gain.condition,
          printable(candidate, 60));
    found->points.push_back(std::move(gain));
  }
  for (GainByCondition& one : all) std::ranges::sort(one.points, {}, &ConditionGain::condition);
  return all;
}

OrderedJson to_json(const GainByCondition& gains) {
  OrderedJson json = {{"baseline", gains.baseline}, {"candidate", gains.candidate}, {"points", OrderedJson::array()}};
  for (const ConditionGain& point : gains.points) {
    OrderedJson& entry = json["points"].emplace_back();
    entry = {{"condition", point.condition},
             {"data_set", point.comparison.data_set},
             {"split", point.comparison.split},
             {"seeds", point.comparison.baseline_seeds},
             {"users", point.comparison.users}};
    for (std::size_t metric = 0; metric < point.comparison.metrics.size(); ++metric) {
      const MetricGain& gain = point.comparison.metrics[metric];
      OrderedJson& metric_json = entry[gain.metric.name()];
      metric_json = {{"baseline", gain.seeds.baseline.mean}, {"candidate", gain.seeds.candidate.mean}};
      put(metric_json, "log_ratio", gain.log_ratio);
      metric_json["decision"] = to_json(point.decisions[metric]);
    }
  }
  return json;
}

}  // namespace gainlens::analyses
