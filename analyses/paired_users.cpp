#include "analyses/paired_users.h"

#include "analyses/statistics.h"
#include "core/check.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace gainlens::analyses {
namespace {

std::vector<float> values_of(const RankingMetric& metric, std::span<const float> ranks, std::size_t users) {
  std::vector<float> values;
  values.reserve(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    CHECK(std::isfinite(ranks[i]) && ranks[i] >= 1, "ranks: {} for user {} in run {}; a rank is finite and at least 1",
          ranks[i], i % users, i / users);
    values.push_back(static_cast<float>(metric.of_rank(ranks[i])));
  }
  return values;
}

}  // namespace

PairedUsers paired_users(const RankingMetric& metric, std::span<const float> baseline_ranks,
                         std::span<const float> candidate_ranks, std::size_t seeds, std::size_t users) {
  CHECK(seeds > 0 && users > 0, "ranks: {} runs of {} users; each arm needs at least one run and one user", seeds,
        users);
  CHECK(baseline_ranks.size() == seeds * users && candidate_ranks.size() == seeds * users,
        "ranks: {} of the baseline and {} of the candidate; {} runs of {} users need {} each", baseline_ranks.size(),
        candidate_ranks.size(), seeds, users, seeds * users);
  return {seeds, users, values_of(metric, baseline_ranks, users), values_of(metric, candidate_ranks, users)};
}

SeedMeans seed_means(const PairedUsers& users, std::span<const std::size_t> group) {
  ASSERT(!group.empty(), "means over no user");
  SeedMeans means;
  std::vector<double> differences;
  double scale = 0;
  const auto count = static_cast<double>(group.size());
  for (std::size_t seed = 0; seed < users.seeds; ++seed) {
    double baseline = 0, candidate = 0, difference = 0;
    for (const std::size_t user : group) {
      const std::size_t at = seed * users.users + user;
      baseline += users.baseline[at];
      candidate += users.candidate[at];
      difference += static_cast<double>(users.candidate[at]) - static_cast<double>(users.baseline[at]);
    }
    means.baseline.push_back(baseline / count);
    means.candidate.push_back(candidate / count);
    differences.push_back(difference / count);
    scale = std::max(scale, std::abs(baseline / count) + std::abs(candidate / count));
  }
  means.differences = without_rounding(differences, scale);
  return means;
}

SeedMeans seed_means(const PairedUsers& users) {
  std::vector<std::size_t> all(users.users);
  std::iota(all.begin(), all.end(), std::size_t{0});
  return seed_means(users, all);
}

}  // namespace gainlens::analyses
