#include "analyses/paired_users.h"

#include "core/check.h"

#include <cmath>

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

std::vector<double> means_by_seed(std::span<const float> values, std::size_t users) {
  ASSERT(users > 0 && values.size() % users == 0, "{} values of {} users", values.size(), users);
  std::vector<double> means;
  for (std::size_t first = 0; first < values.size(); first += users) {
    double sum = 0;
    for (const float value : values.subspan(first, users)) sum += value;
    means.push_back(sum / static_cast<double>(users));
  }
  return means;
}

}  // namespace gainlens::analyses
