#include "analyses/seed_unit.h"

#include "core/check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_map>

namespace gainlens::analyses {
namespace {

/// What a unit adds to the linear form of a gain: weight of its candidate value, and of its baseline value.
struct ArmWeights {
  double candidate, baseline;
};

/// Sums over the units of a group, of each run. They are divided once, at the end: sums of hits are exact.
struct GroupSums {
  std::vector<double> candidate, baseline, difference;  // [seed]
  double units;
};

GroupSums group_sums(const PairedUnits& pairs, const SignedGroup& group) {
  GroupSums sums{{}, {}, {}, static_cast<double>(group.units.size())};
  for (std::size_t seed = 0; seed < pairs.seeds; ++seed) {
    double candidate = 0, baseline = 0, difference = 0;
    for (const std::size_t unit : group.units) {
      const double after = pairs.candidate[seed * pairs.units + unit],
                   before = pairs.baseline[seed * pairs.units + unit];
      candidate += after;
      baseline += before;
      difference += after - before;
    }
    sums.candidate.push_back(candidate);
    sums.baseline.push_back(baseline);
    sums.difference.push_back(difference);
  }
  return sums;
}

double total(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

/// Numbers 0, 1, ... for the clusters of the units in the groups.
class ClusterNumbers {
 public:
  explicit ClusterNumbers(std::span<const std::size_t> cluster) : cluster_(cluster) {}
  std::size_t of(std::size_t unit) {
    return numbers_.try_emplace(cluster_.empty() ? unit : cluster_[unit], numbers_.size()).first->second;
  }
  std::size_t count() const { return numbers_.size(); }

 private:
  std::span<const std::size_t> cluster_;
  std::unordered_map<std::size_t, std::size_t> numbers_;
};

/// The clusters of one group.
struct ClusteredGroup {
  std::vector<std::size_t> cluster;  // [position in the group] number among all clusters
  std::vector<double> sizes;         // [number among all clusters] units of the group; 0: none
  std::size_t count = 0;             // clusters with a unit

  /// Clusters of equal size that would say as much: (sum of sizes)^2 / sum of their squares.
  double effective() const {
    double squares = 0;
    for (const double size : sizes) squares += size * size;
    const auto units = static_cast<double>(cluster.size());
    return units * units / squares;
  }
};

struct GroupClusters {
  std::vector<ClusteredGroup> groups;
  std::size_t total = 0;  // clusters

  std::size_t smallest() const { return std::ranges::min(groups, {}, &ClusteredGroup::count).count; }
  double min_effective() const {
    double least = std::numeric_limits<double>::infinity();
    for (const ClusteredGroup& group : groups) least = std::min(least, group.effective());
    return least;
  }
};

GroupClusters group_clusters(std::span<const SignedGroup> groups, std::span<const std::size_t> cluster) {
  ClusterNumbers numbers(cluster);
  GroupClusters found;
  for (const SignedGroup& group : groups) {
    ClusteredGroup& made = found.groups.emplace_back();
    for (const std::size_t unit : group.units) {
      const std::size_t number = numbers.of(unit);
      made.cluster.push_back(number);
      if (number >= made.sizes.size()) made.sizes.resize(number + 1, 0.0);
      if (made.sizes[number]++ == 0) ++made.count;
    }
  }
  found.total = numbers.count();
  return found;
}

/// The linear form of a contrast: its value in each run, and the influence of each cluster.
struct LinearForm {
  std::vector<double> by_seed;    // [seed]
  std::vector<double> influence;  // [seed, cluster]
  double scale = 0;               // size of the terms of a value
};

/// The jackknife over clusters: by how much the mean of a group changes without a cluster. A cluster with much of the
/// weight pulls the mean to itself, and its remainder is small: without it the mean moves by more than its remainder.
void add_influence(LinearForm& form, const PairedUnits& pairs, const SignedGroup& group, const ArmWeights& weights,
                   const ClusteredGroup& clustered) {
  const std::size_t clusters = form.influence.size() / pairs.seeds;
  const auto size = static_cast<double>(group.units.size()), own_clusters = static_cast<double>(clustered.count);
  const double jackknife = std::sqrt((own_clusters - 1) / own_clusters);
  std::vector<double> values(group.units.size());
  for (std::size_t seed = 0; seed < pairs.seeds; ++seed) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t at = seed * pairs.units + group.units[i];
      values[i] = weights.candidate * pairs.candidate[at] - weights.baseline * pairs.baseline[at];
    }
    const double middle = mean(values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t cluster = clustered.cluster[i];
      form.influence[seed * clusters + cluster] +=
          group.sign * jackknife * (values[i] - middle) / (size - clustered.sizes[cluster]);
    }
  }
}

void check_groups(const PairedUnits& pairs, std::span<const SignedGroup> groups) {
  ASSERT(!groups.empty() && pairs.baseline.size() == pairs.seeds * pairs.units &&
             pairs.candidate.size() == pairs.baseline.size(),
         "{} groups; {} and {} values of {} units", groups.size(), pairs.baseline.size(), pairs.candidate.size(),
         pairs.units);
  std::vector<bool> seen(pairs.units, false);
  for (const SignedGroup& group : groups) {
    for (const std::size_t unit : group.units) {
      ASSERT(unit < pairs.units && !seen[unit], "unit {} of {}, or twice", unit, pairs.units);
      seen[unit] = true;
    }
  }
}

}  // namespace

ScoreGain score_gain(const PairedUnits& pairs, std::span<const std::size_t> cluster, const Resampling& resampling,
                     const Resamples& resamples) {
  const std::vector<SignedGroup> all = {all_units(pairs)};
  const SeedMeans means = seed_means(pairs);
  return {means.differences, compare_seeds(means, resampling), crossed_gain(pairs, all, GainScale::difference, cluster),
          crossed_gain(pairs, all, GainScale::log_ratio, cluster), bootstrap_gain(pairs, all, resamples)};
}

OrderedJson to_json(const ScoreGain& gain) {
  OrderedJson json = {{"seeds", to_json(gain.seeds)}};
  put(json, "difference", gain.difference);
  put(json, "log_ratio", gain.log_ratio);
  put(json, "bootstrap_difference", gain.bootstrap.difference);
  put(json, "bootstrap_log_ratio", gain.bootstrap.log_ratio);
  return json;
}

SignedGroup all_units(const PairedUnits& pairs) {
  SignedGroup group{std::vector<std::size_t>(pairs.units), 1};
  std::iota(group.units.begin(), group.units.end(), std::size_t{0});
  return group;
}

Maybe<CrossedEstimate> crossed_gain(const PairedUnits& pairs, std::span<const SignedGroup> groups, GainScale scale,
                                    std::span<const std::size_t> cluster) {
  using Result = Maybe<CrossedEstimate>;
  check_groups(pairs, groups);
  ASSERT(cluster.empty() || cluster.size() == pairs.units, "{} clusters for {} {}s", cluster.size(), pairs.units,
         pairs.noun);
  const GroupClusters clusters = group_clusters(groups, cluster);
  if (clusters.smallest() < 2) return Result::none(too_few_units(pairs.noun));
  LinearForm form{std::vector<double>(pairs.seeds, 0.0), std::vector<double>(pairs.seeds * clusters.total, 0.0)};
  const auto seeds = static_cast<double>(pairs.seeds);
  double value = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const double sign = groups[g].sign;
    const GroupSums sums = group_sums(pairs, groups[g]);
    const double candidate = total(sums.candidate) / (seeds * sums.units),
                 baseline = total(sums.baseline) / (seeds * sums.units);
    const bool ratio = scale == GainScale::log_ratio;
    if (ratio && !(candidate > 0 && baseline > 0))
      return Result::none(candidate < 0 || baseline < 0 ? "a mean is below 0: there is no ratio"
                                                        : "a mean is 0: there is no ratio");
    const ArmWeights weights = ratio ? ArmWeights{1 / candidate, 1 / baseline} : ArmWeights{1, 1};
    value += sign * (ratio ? std::log(candidate / baseline) : total(sums.difference) / (seeds * sums.units));
    for (std::size_t seed = 0; seed < pairs.seeds; ++seed) {
      const double weighted = ratio ? weights.candidate * sums.candidate[seed] - weights.baseline * sums.baseline[seed]
                                    : sums.difference[seed];
      form.by_seed[seed] += sign * weighted / sums.units;
    }
    form.scale += std::abs(weights.candidate * candidate) + std::abs(weights.baseline * baseline);
    add_influence(form, pairs, groups[g], weights, clusters.groups[g]);
  }
  return crossed_estimate(value, form.by_seed, form.influence, clusters.min_effective() - 1, form.scale, pairs.noun);
}

}  // namespace gainlens::analyses
