#include "analyses/paired_units.h"

#include "analyses/statistics.h"
#include "core/check.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace gainlens::analyses {
namespace {

/// @param what  "ranks", "scores"
void check_sizes(std::size_t baseline, std::size_t candidate, std::size_t seeds, std::size_t units,
                 std::string_view what, const std::string& noun) {
  CHECK(seeds > 0 && units > 0, "{}: {} runs of {} {}s; each arm needs at least one run and one {}", what, seeds, units,
        noun, noun);
  CHECK(baseline == seeds * units && candidate == seeds * units,
        "{}: {} of the baseline and {} of the candidate; {} runs of {} {}s need {} each", what, baseline, candidate,
        seeds, units, noun, seeds * units);
}

std::vector<double> values_of(const RankingMetric& metric, std::span<const double> ranks, std::size_t users) {
  std::vector<double> values;
  values.reserve(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    CHECK(std::isfinite(ranks[i]) && ranks[i] >= 1, "ranks: {} for user {} in run {}; a rank is finite and at least 1",
          ranks[i], i % users, i / users);
    values.push_back(static_cast<float>(metric.value_at(ranks[i])));
  }
  return values;
}

}  // namespace

PairedUnits paired_units(std::vector<double> baseline, std::vector<double> candidate, std::size_t seeds,
                         std::size_t units, const std::string& noun) {
  check_sizes(baseline.size(), candidate.size(), seeds, units, "scores", noun);
  for (const std::vector<double>* scores : {&baseline, &candidate}) {
    for (std::size_t i = 0; i < scores->size(); ++i)
      CHECK(std::isfinite((*scores)[i]), "scores: {} for {} {} in run {}; a score is finite", (*scores)[i], noun,
            i % units, i / units);
  }
  return {seeds, units, std::move(baseline), std::move(candidate), noun};
}

PairedUnits paired_users(const RankingMetric& metric, std::span<const double> baseline_ranks,
                         std::span<const double> candidate_ranks, std::size_t seeds, std::size_t users) {
  check_sizes(baseline_ranks.size(), candidate_ranks.size(), seeds, users, "ranks", "user");
  return {seeds, users, values_of(metric, baseline_ranks, users), values_of(metric, candidate_ranks, users), "user"};
}

SeedMeans seed_means(const PairedUnits& pairs, std::span<const std::size_t> group) {
  ASSERT(!group.empty(), "means over no {}", pairs.noun);
  SeedMeans means;
  means.noun = pairs.noun;
  std::vector<double> differences;
  double scale = 0;
  const auto count = static_cast<double>(group.size());
  for (std::size_t seed = 0; seed < pairs.seeds; ++seed) {
    double baseline = 0, candidate = 0, difference = 0;
    for (const std::size_t unit : group) {
      const std::size_t at = seed * pairs.units + unit;
      baseline += pairs.baseline[at];
      candidate += pairs.candidate[at];
      difference += pairs.candidate[at] - pairs.baseline[at];
    }
    means.baseline.push_back(baseline / count);
    means.candidate.push_back(candidate / count);
    differences.push_back(difference / count);
    scale = std::max(scale, std::abs(baseline / count) + std::abs(candidate / count));
  }
  means.differences = without_rounding(differences, scale);
  return means;
}

SeedMeans seed_means(const PairedUnits& pairs) {
  std::vector<std::size_t> all(pairs.units);
  std::iota(all.begin(), all.end(), std::size_t{0});
  return seed_means(pairs, all);
}

}  // namespace gainlens::analyses
