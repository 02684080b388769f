#include "analyses/recommender_comparison.h"

#include "core/check.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

namespace gainlens::analyses {
namespace {

/// The unit of a user is the target item: users of one item gain together if the model has learned this item.
std::vector<std::size_t> units_of(const UserCounts& users) {
  return {users.target.begin(), users.target.end()};
}

MetricGain gain_of(const RankingMetric& metric, const PairedUnits& pairs, const UserCounts& users,
                   const RecommenderOptions& options) {
  const std::vector<std::size_t> unit = units_of(users);
  std::vector<std::int64_t> frequency;
  for (std::size_t user = 0; user < users.users(); ++user) frequency.push_back(users.target_count(user));
  return {score_gain(pairs, unit, options.resampling, options.resamples), metric,
          gain_regression(pairs, frequency, users.history_length, unit)};
}

StratifiedGains stratified(StratumKind kind, const UserCounts& users, const std::vector<PairedUnits>& metrics,
                           const RecommenderOptions& options) {
  StratifiedGains result{stratify(kind, users, options.item_edges)};
  const std::size_t count = result.strata.users.size();
  using Gains = std::vector<StratumInteraction>;
  if (count < 2) {
    result.gains = Maybe<Gains>::none("all users are in one stratum");
    return result;
  }
  const std::vector<std::size_t> stratum(result.strata.stratum.begin(), result.strata.stratum.end());
  const std::vector<std::size_t> unit = units_of(users);
  Gains gains;
  for (const PairedUnits& pairs : metrics)
    gains.push_back(stratum_interaction(pairs, stratum, count, 0, count - 1, unit, options.resamples));
  result.gains = std::move(gains);
  return result;
}

/// @param name  of the data set; results are stored by it
DataSetGain data_set_gain(const ArmComparison& comparison, std::size_t metric, std::string name) {
  const MetricGain& gain = comparison.metrics[metric];
  SeededDifferences runs;
  runs.seeds = comparison.baseline_seeds;
  runs.differences = gain.seed_differences;
  return {std::move(name), std::move(runs), gain.seeds.naive_p, gain.log_ratio};
}

}  // namespace

std::string ArmComparison::title() const {
  return fmt::format("{} against {} on {} ({})", candidate, baseline, printable(data_set, 60), printable(backbone, 60));
}

std::string ArmComparison::title_with_split() const {
  return fmt::format("{}, split {}", title(), printable(split, 12));
}

namespace {

bool are_those_of_paper(const ArmComparison& comparison) {
  return comparison.baseline_arm == "plain" && comparison.candidate_arm == "bft";
}

}  // namespace

const PaperGain* paper_gain(const ArmComparison& comparison, const RankingMetric& metric) {
  if (!are_those_of_paper(comparison)) return nullptr;
  return find_paper_gain(comparison.backbone, comparison.paper.data_set, metric.name());
}

const double* paper_stratum(const ArmComparison& comparison, StratumKind kind, std::size_t stratum,
                            const RankingMetric& metric) {
  if (!are_those_of_paper(comparison)) return nullptr;
  return find_paper_stratum(comparison.backbone, comparison.paper.data_set, kind, stratum, metric.name());
}

std::string backbones_of(const ArmPair& pair) {
  const std::string candidate = pair.candidate.run->backbone(), baseline = pair.baseline.run->backbone();
  return candidate == baseline ? candidate : fmt::format("{} against {}", candidate, baseline);
}

PaperMatch paper_match_of(const runfile::RecommendRun& run, std::string_view name) {
  return paper_match(name, std::ssize(run.units), std::ssize(run.item_train_count),
                     run.request.at("data").at("interactions").get<std::int64_t>());
}

ArmComparison compare_arms(const ArmPair& pair, const RecommenderOptions& options) {
  const runfile::RecommendRun& run = *pair.baseline.run;
  const UserCounts users = user_counts(run);
  const std::vector<double> baseline = pair.baseline.scores(runfile::rank_score),
                            candidate = pair.candidate.scores(runfile::rank_score);
  const std::size_t seeds = pair.baseline.seeds().size();
  std::vector<PairedUnits> metrics;
  std::vector<MetricGain> gains;
  for (const RankingMetric& metric : options.metrics) {
    metrics.push_back(paired_users(metric, baseline, candidate, seeds, users.users()));
    gains.push_back(gain_of(metric, metrics.back(), users, options));
  }
  return {.data_set = run.data_name(),
          .backbone = backbones_of(pair),
          .split = run.split(),
          .baseline = pair.baseline.label,
          .candidate = pair.candidate.label,
          .baseline_arm = pair.baseline.name(),
          .candidate_arm = pair.candidate.name(),
          .baseline_seeds = pair.baseline.seeds(),
          .candidate_seeds = pair.candidate.seeds(),
          .users = users.users(),
          .items = users.item_train_count.size(),
          .metrics = std::move(gains),
          .by_item = stratified(StratumKind::item_frequency, users, metrics, options),
          .by_user = stratified(StratumKind::user_activity, users, metrics, options),
          .length_frequency_correlation = length_frequency_correlation(users),
          .baseline_curves = curves_of(pair.baseline),
          .candidate_curves = curves_of(pair.candidate),
          .paper = paper_match_of(run, options.paper)};
}

std::vector<PooledComparison> pool_comparisons(std::span<const ArmComparison> comparisons,
                                               const RecommenderOptions& options) {
  using Key = std::tuple<std::string, std::string, std::string>;
  const auto key_of = [](const ArmComparison& c) { return Key{c.backbone, c.baseline_arm, c.candidate_arm}; };
  std::vector<PooledComparison> pooled;
  std::set<Key> done;
  for (const ArmComparison& first : comparisons) {
    if (!done.insert(key_of(first)).second) continue;
    std::vector<const ArmComparison*> group;
    std::set<std::string> splits;
    for (const ArmComparison& other : comparisons) {
      // Of two comparisons on one split only the first is pooled: they share their users.
      if (key_of(other) == key_of(first) && splits.insert(other.split).second) group.push_back(&other);
    }
    if (group.size() < 2) continue;
    PooledComparison entry{first.backbone, first.baseline_arm, first.candidate_arm, options.metrics, {}};
    for (std::size_t metric = 0; metric < options.metrics.size(); ++metric) {
      std::vector<DataSetGain> gains;
      gains.reserve(group.size());
      for (const ArmComparison* comparison : group) {
        const bool alone = std::ranges::count(group, comparison->data_set, &ArmComparison::data_set) == 1;
        gains.push_back(
            data_set_gain(*comparison, metric,
                          alone ? comparison->data_set
                                : fmt::format("{}, split {}", comparison->data_set, comparison->split.substr(0, 12))));
      }
      entry.metrics.push_back(pool_data_sets(gains, options.resampling));
    }
    pooled.push_back(std::move(entry));
  }
  return pooled;
}

}  // namespace gainlens::analyses
